"""The lexer's tokens as terminals of the grammar, with a unit apart from its number."""

import re

from sentences import PLACES, metrics
from tidegate_dsl.diagnostics import Findings, Source
from tidegate_dsl.syntax import Kind, lex
from tidegate_dsl.vocabulary import COMPARISONS, METRICS, UNITS

NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
KINDS = {
    "WORD": Kind.WORD,
    "NUMBER": Kind.NUMBER,
    "STRING": Kind.STRING,
    "LENGTH": Kind.LENGTH,
    "PREFIX": Kind.ADDRESS,
    "TIME": Kind.TIME,
}


def tokens_of(text: str) -> list[tuple[Kind, str]]:
    tokens = []
    for kind, word, _ in lex(Source("", text), Findings("")).tokens:
        number = NUMBER.match(word)
        if kind is Kind.NUMBER and number and word[number.end() :] in UNITS:
            tokens += [(Kind.NUMBER, number[0]), (Kind.WORD, word[number.end() :])]
        else:
            tokens.append((kind, word))
    return tokens[:-1]  # without END


def is_a(token: tuple[Kind, str], terminal: str) -> bool:  # noqa: PLR0911
    kind, text = token
    if terminal.startswith('"'):
        return kind in (Kind.WORD, Kind.PUNCTUATION) and text == terminal[1:-1]
    match terminal:
        case "EOL":
            return kind is Kind.NEWLINE
        case "NUMBER":
            return kind is Kind.NUMBER and NUMBER.fullmatch(text) is not None
        case "COUNT":
            return kind is Kind.NUMBER and text.isdigit()
        case "METRIC":
            return kind is Kind.WORD and text in METRICS
        case "PERCENTILE":
            return kind is Kind.WORD and re.fullmatch(r"p[1-9][0-9]?", text) is not None
    return kind is KINDS[terminal]


def metrics_stand_right(tokens: list[tuple[Kind, str]]) -> bool:
    """What the grammar leaves to the text: places and types of metrics, and the comparison behind `leave`.

    Only for what the grammar accepts: a metric's name that a comparison follows is a metric there.
    """
    place, metric, comparison = "", "", ""
    words = [text for _, text in tokens]
    for i, (kind, word) in enumerate(tokens):
        last, behind = words[i - 1] if i else "\n", words[i + 1] if i + 1 < len(words) else ""
        if kind is Kind.NEWLINE or word == "{":
            place = ""
        starts = i == 0 or tokens[i - 1][0] is Kind.NEWLINE or last == "{"
        if kind is Kind.WORD and ((starts and word in PLACES) or (place == "" and word == "where")):
            place = PLACES[word]
        is_metric = kind is Kind.WORD and word in METRICS and place != ""
        if is_metric and behind in COMPARISONS:
            metric, comparison = word, behind
            unit = UNITS.get(words[i + 3])
            if word not in metrics(place, flags=False) or unit is None:
                return False
            if unit.dimension != METRICS[word].dimension:
                return False
        elif is_metric and place == "where" and last in ("where", "and", "not"):
            if word not in metrics(place, flags=True):
                return False
        elif is_metric and last in ("measure", "when"):
            if word not in metrics(place):
                return False
        elif word == "leave" and place == "exclude":
            unit = UNITS[words[i + 3]]
            if behind != comparison or unit.dimension != METRICS[metric].dimension:
                return False
    return True
