"""The grammar of dsl/SPEC.md section 2 as data: read from the text, walked to recognise and to make sentences."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(r'\s*(?:"([^"]*)"|([A-Za-z_]\w*)|([=;|(){}\[\]]))')
_CLOSING: Final = {"[": "]", "{": "}", "(": ")"}


@dataclass(frozen=True, eq=False)
class Node:
    """A piece of the right side of a production; told from others by identity.

    Attributes:
        kind: `literal` (a quoted word), `terminal` (capitals), `rule` (another production), `sequence`, `choice`,
            `optional` or `many`.
        text: of a literal, a terminal or a rule.
        parts: of the others; one for `optional` and `many`.
        argument: what stands behind a rule in brackets, as in `body(select)`.
    """

    kind: str
    text: str = ""
    parts: tuple["Node", ...] = ()
    argument: str = ""

    def walk(self) -> Iterator["Node"]:
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True)
class Grammar:
    """Productions by name; `parameters` names the bracketed word on the left side of those that have one."""

    rules: dict[str, Node]
    parameters: dict[str, str]

    def nodes(self) -> Iterator[Node]:
        for rule in self.rules.values():
            yield from rule.walk()

    def of(self, node: Node, bound: dict[str, str]) -> tuple[Node, dict[str, str]]:
        """The production that a `rule` node stands for, and what its parameter is bound to."""
        name = bound.get(node.text, node.text)
        argument = bound.get(node.argument, node.argument)
        return self.rules[name], ({self.parameters[name]: argument} if name in self.parameters else {})


def read_grammar(block: str) -> Grammar:
    """The productions of an EBNF block."""
    tokens = [
        ('"', literal) if literal else (mark or word, mark or word)
        for literal, word, mark in _TOKEN.findall(block)
    ]
    named = frozenset(re.findall(r"^ *(\w+)(?:\(\w+\))? *=", block, re.MULTILINE))
    parameters = dict(re.findall(r"^ *(\w+)\((\w+)\) *=", block, re.MULTILINE))
    names = named | frozenset(parameters.values())
    rules: dict[str, Node] = {}
    while tokens:
        name = tokens.pop(0)[1]
        if name in parameters:
            del tokens[:3]
        assert tokens.pop(0)[0] == "=", f"production {name} without `=`"
        assert name not in rules, f"production {name} stands twice"
        rules[name] = _choice(tokens, ";", names)
    return Grammar(rules, parameters)


def _choice(tokens: list[tuple[str, str]], closing: str, names: frozenset[str]) -> Node:
    """What stands before `closing`, which is taken as well."""
    options: list[list[Node]] = [[]]
    while (token := tokens.pop(0))[0] != closing:
        mark, text = token
        if mark == "|":
            options.append([])
        elif mark in _CLOSING:
            inner = _choice(tokens, _CLOSING[mark], names)
            kind = {"[": "optional", "{": "many"}.get(mark)
            options[-1].append(Node(kind, parts=(inner,)) if kind else inner)
        elif mark == '"':
            options[-1].append(Node("literal", text))
        else:
            argument = ""
            if text == "body":
                argument = tokens[1][1]
                del tokens[:3]
            options[-1].append(Node("rule" if text in names else "terminal", text, argument=argument))
    sequences = [
        option[0] if len(option) == 1 else Node("sequence", parts=tuple(option)) for option in options
    ]
    return sequences[0] if len(sequences) == 1 else Node("choice", parts=tuple(sequences))


def recognises(grammar: Grammar, start: str, tokens: Sequence[str], is_a: Callable[[str, str], bool]) -> bool:
    """Whether the tokens are a sentence: every derivation is tried, none is preferred.

    Args:
        grammar: the productions.
        start: the first production.
        tokens: the sentence.
        is_a: whether a token is a terminal: of a quoted word, the word in quotes.
    """
    ends: dict[tuple[Node, tuple[tuple[str, str], ...], int], frozenset[int]] = {}

    def behind(node: Node, bound: dict[str, str], at: int) -> frozenset[int]:
        key = (node, tuple(bound.items()), at)
        if key not in ends:
            ends[key] = derive(node, bound, at)
        return ends[key]

    def derive(node: Node, bound: dict[str, str], at: int) -> frozenset[int]:
        match node.kind:
            case "literal" | "terminal":
                shown = f'"{node.text}"' if node.kind == "literal" else node.text
                fits = at < len(tokens) and is_a(tokens[at], shown)
                return frozenset({at + 1} if fits else ())
            case "rule":
                rule, inner = grammar.of(node, bound)
                return behind(rule, inner, at)
            case "choice":
                return frozenset().union(*(behind(part, bound, at) for part in node.parts))
            case "sequence":
                places = frozenset({at})
                for part in node.parts:
                    places = frozenset().union(*(behind(part, bound, place) for place in places))
                return places
            case "optional":
                return behind(node.parts[0], bound, at) | {at}
        reached, fresh = frozenset({at}), frozenset({at})
        while fresh:
            fresh = frozenset().union(*(behind(node.parts[0], bound, place) for place in fresh)) - reached
            reached |= fresh
        return reached

    return len(tokens) in behind(grammar.rules[start], {}, 0)
