"""Random sentences of the grammar, in random layout: what section 2 of dsl/SPEC.md lets one write."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from ebnf import Grammar, Node
from tidegate_dsl.vocabulary import METRICS, UNITS

# No word is reserved, so names are drawn from words that mean something elsewhere, too.
NAMES = ("slow", "fra2", "rank", "select", "of", "in", "and", "not", "new", "leave", "step", "x_9")
TEXTS = {
    "WORD": NAMES,
    "STRING": ('""', '"1010..."', '"rows.pb"', '"# no comment, { no block }"', '"ümläut"'),
    "NUMBER": ("0", "1", "5", "20", "0.5", "2026.1", "99.9999", "123456789012345678", "0.12345678901234567"),
    "COUNT": ("0", "1", "54", "500", "123456789012345678"),
    "TIME": ("2026-12-01", "2026-12-01T06:00Z", "2099-01-31T23:59Z"),
    "PREFIX": ("192.0.2.0/24", "2001:db8::/32", "0.0.0.0/0", "::/0", "198.51.100.7/32"),
    "LENGTH": ("/24", "/56", "/0", "/128"),
    "PERCENTILE": ("p1", "p10", "p50", "p99"),
}
PLACES = {"measure": "measure", "rank": "measure", "where": "where", "exclude": "exclude", "abort": "abort"}
MOST_REPEATS = 3

Choose = Callable[[Node, int], int]


def metrics(place: str, *, flags: bool | None = None) -> list[str]:
    """Metrics that may stand in a place; `flags`: only flags, or none of them."""
    return [
        metric.name
        for metric in METRICS.values()
        if place in metric.places and flags in (None, metric.dimension == "flag")
    ]


@dataclass
class Writer:
    """Walks the grammar from a production to the words of a sentence; EOL stands as a line feed.

    `choose` says which of so many ways to take at a node; `visited` are all nodes that were walked.
    """

    grammar: Grammar
    choose: Choose
    words: list[str] = field(default_factory=list)
    visited: set[Node] = field(default_factory=set)
    place: str = ""
    comparing: bool = False
    metric: str = ""
    comparison: str = ""
    leaving: bool = False

    def write(self, node: Node, bound: dict[str, str]) -> None:
        self.visited.add(node)
        match node.kind:
            case "literal":
                self._literal(node.text)
            case "terminal":
                self._terminal(node)
            case "rule":
                self._rule(node, bound)
            case "sequence":
                for part in node.parts:
                    self.write(part, bound)
            case "choice":
                self.write(node.parts[self.choose(node, len(node.parts))], bound)
            case "optional":
                if self.choose(node, 2):
                    self.write(node.parts[0], bound)
            case "many":
                for _ in range(self.choose(node, MOST_REPEATS + 1)):
                    self.write(node.parts[0], bound)

    def _literal(self, text: str) -> None:
        self.place = PLACES.get(text, self.place)
        self.leaving = text == "leave" or (self.leaving and text in "<>=")
        self.words.append(text)

    def _terminal(self, node: Node) -> None:
        if node.text == "EOL":
            self.words.append("\n")
            return
        options = TEXTS.get(node.text)
        if node.text == "METRIC":
            flags = False if self.comparing else True if self.place == "where" else None
            options = tuple(metrics(self.place, flags=flags))
        assert options, f"nothing to write for {node.text}"
        self.words.append(options[self.choose(node, len(options))])

    def _rule(self, node: Node, bound: dict[str, str]) -> None:
        rule, inner = self.grammar.of(node, bound)
        if node.text == "comparison":
            self.comparing = True
        if node.text == "COMPARE" and self.leaving:  # of an `exclude`: it repeats the comparison
            self.words.append(self.comparison)
            return
        if node.text == "value":  # the types of section 3 are productions of their own
            kind = METRICS[self.metric].dimension
            option = next(part for part in rule.parts if part.text == kind)
            self.visited |= {rule, option}
            self.write(option, inner)
            return
        start = len(self.words)
        self.visited.add(rule)
        self.write(rule, inner)
        if node.text == "COMPARE":
            self.metric, self.comparison = self.words[start - 1 : start + 1]
        if node.text == "comparison":
            self.comparing = False


def layout(words: list[str], random: Random) -> str:
    """The words as text: blanks or none where none are needed, comments and empty lines at the ends of lines."""
    text = ""
    for word in words:
        if word == "\n":
            end = random.choice(("", "", " ", "\t", "# comment", '  # "quoted" { } ä', "\r"))
            text += f"{end}\n{random.choice(('', '', '', chr(10), '  # alone' + chr(10)))}"
            continue
        unit = word in UNITS and text[-1:].isdigit()
        touching = text[-1:] in '{},%<>="\n' or word[0] in '{},%<>="'
        if not text.endswith("\n") and text and not ((unit or touching) and random.random() < 0.5):
            text += random.choice((" ", " ", "\t", "   "))
        text += word
    return text
