"""Writes syntaxes/tide.tmLanguage.json from the language's tables; a test fails while it is not up to date.

Run it after a change of the vocabulary: `python dsl/vscode/make_grammar.py`.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tidegate_dsl.vocabulary import (
    BLOCKS,
    DIRECTIONS,
    FAILURES,
    FAMILIES,
    METRICS,
    OVERRIDE,
    REASONS,
    REQUIREMENTS,
    SIDES,
    TOP_LEVEL,
    TRAFFIC_CLASSES,
    UNITS,
    VERDICTS,
)

TARGET: Final = Path(__file__).with_name("syntaxes") / "tide.tmLanguage.json"

_CONSTANTS: Final = {
    *DIRECTIONS,
    *FAILURES,
    *FAMILIES,
    *REASONS,
    *REQUIREMENTS,
    *SIDES,
    *TRAFFIC_CLASSES,
    *VERDICTS,
}
_CLAUSES: Final = {*TOP_LEVEL, *OVERRIDE, *(keyword for rules in BLOCKS.values() for keyword in rules)}


def grammar() -> dict[str, Any]:
    """The TextMate grammar; of two rules that match at one place the first counts."""
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "Tidegate policy",
        "scopeName": "source.tide",
        "fileTypes": ["tide"],
        "patterns": [{"include": f"#{name}"} for name in _rules()],
        "repository": _rules(),
    }


def _rules() -> dict[str, dict[str, Any]]:
    units = sorted((name for name in UNITS if name.isalpha()), key=len, reverse=True)
    return {
        "comment": {"name": "comment.line.number-sign.tide", "match": "#.*$"},
        "test": {
            "match": r'^\s*(test)\s+("[^"]*")',
            "captures": _captures("keyword.control.block.tide", "entity.name.function.tide"),
        },
        "block": {
            "match": rf"^\s*({_either(set(BLOCKS) - {'test'})})\s+([a-z][a-z0-9_]*)",
            "captures": _captures("keyword.control.block.tide", "entity.name.type.tide"),
        },
        "clause": {
            "match": rf"(?:^|\{{)\s*({_either(_CLAUSES)})(?![\w-])",
            "captures": _captures("keyword.other.clause.tide"),
        },
        "string": {"name": "string.quoted.double.tide", "match": r'"[^"]*"'},
        "time": {
            "name": "constant.other.time.tide",
            "match": r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}Z)?",
        },
        "address": {
            "name": "constant.other.prefix.tide",
            "match": r"(?<![\w.:])(?:[0-9]+(?:\.[0-9]+){3}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*)(?:/[0-9]{1,3})?",
        },
        "length": {"name": "constant.numeric.length.tide", "match": r"/[0-9]{1,3}\b"},
        "number": {
            "match": rf"\b([0-9]+(?:\.[0-9]+)?)(?:\s*(%)|\s*({'|'.join(units)})\b)?",
            "captures": _captures(
                "constant.numeric.tide", "keyword.other.unit.tide", "keyword.other.unit.tide"
            ),
        },
        "metric": {"name": "support.variable.metric.tide", "match": rf"\b(?:{_either(METRICS)})(?![\w-])"},
        "constant": {"name": "constant.language.tide", "match": rf"\b(?:{_either(_CONSTANTS)})(?![\w-])"},
        "word": {"name": "keyword.other.tide", "match": rf"\b(?:{_either(_fixed_words())})(?![\w-])"},
        "operator": {"name": "keyword.operator.comparison.tide", "match": "<=|>=|<|>"},
    }


def _fixed_words() -> set[str]:
    """The words of clauses that are neither their first nor a name of something: `by`, `prefix`, `step`."""
    tables = (TOP_LEVEL, OVERRIDE, *BLOCKS.values())
    forms = [form for rules in tables for rule in rules.values() for form in rule.forms]
    found = {word for form in forms for word in re.findall(r"[a-z][a-z0-9_]+", re.sub(r'"[^"]*"', "", form))}
    return (found | {"not", "except", "all"}) - _CONSTANTS - set(METRICS)


def _captures(*names: str) -> dict[str, dict[str, str]]:
    return {str(number): {"name": name} for number, name in enumerate(names, 1)}


def _either(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


def text() -> str:
    """The file's text."""
    return json.dumps(grammar(), indent=2) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
