"""The VS Code extension: its files are what VS Code reads, and its grammar is the language's."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tidegate_dsl.vocabulary import BLOCKS, METRICS, OVERRIDE, TOP_LEVEL, UNITS

ROOM = Path(__file__).parents[1]
EXTENSION = ROOM / "vscode"


def read(name: str) -> Any:
    return json.loads((EXTENSION / name).read_text(encoding="utf-8"))


def test_the_grammar_is_that_of_the_tables() -> None:
    spec = importlib.util.spec_from_file_location("make_grammar", EXTENSION / "make_grammar.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.TARGET.read_text(encoding="utf-8") == made.text(), "run python dsl/vscode/make_grammar.py"


def test_every_file_that_the_manifest_names_is_there() -> None:
    manifest = read("package.json")
    contributes = manifest["contributes"]
    named = [
        manifest["main"],
        contributes["languages"][0]["configuration"],
        contributes["grammars"][0]["path"],
    ]
    assert all((EXTENSION / name).is_file() for name in named)
    assert contributes["grammars"][0]["scopeName"] == read("syntaxes/tide.tmLanguage.json")["scopeName"]
    assert contributes["languages"][0]["extensions"] == [".tide"]


def test_the_extension_reads_only_settings_that_it_declares() -> None:
    declared = read("package.json")["contributes"]["configuration"]["properties"]
    script = (EXTENSION / "extension.js").read_text(encoding="utf-8")
    assert {f"tidegate.{name}" for name in re.findall(r'settings\.get\("(\w+)"\)', script)} == set(declared)
    assert declared["tidegate.path"]["default"] == "tidegate"


def colours(line: str) -> dict[str, str]:
    """What TextMate makes of a line: the leftmost match counts, of several there the first rule's."""
    grammar = read("syntaxes/tide.tmLanguage.json")
    rules = [grammar["repository"][each["include"][1:]] for each in grammar["patterns"]]
    found: dict[str, str] = {}
    at = 0
    while True:
        matches = [(match, rule) for rule in rules if (match := re.compile(rule["match"]).search(line, at))]
        matches = [(match, rule) for match, rule in matches if match.group()]
        if not matches:
            return found
        match, rule = min(matches, key=lambda pair: pair[0].start())
        if "name" in rule:
            found[match.group()] = rule["name"]
        for number, capture in rule.get("captures", {}).items():
            if match.group(int(number)):
                found[match.group(int(number))] = capture["name"]
        at = match.end()


@pytest.mark.parametrize("example", sorted((ROOM / "examples").glob("*.tide")), ids=lambda path: path.name)
def test_every_word_of_an_example_is_coloured(example: Path) -> None:
    clauses = {*TOP_LEVEL, *OVERRIDE, *(word for rules in BLOCKS.values() for word in rules)}
    for line in example.read_text(encoding="utf-8").splitlines():
        plain = re.sub(r'"[^"]*"|#.*', "", line)
        first, *_ = plain.split() or [""]
        shown = colours(line)
        if first in BLOCKS and plain.endswith("{"):
            assert shown[first] == "keyword.control.block.tide"
        elif first in clauses:
            assert shown[first] == "keyword.other.clause.tide"
        for word in plain.split()[1:]:
            if word in METRICS:
                assert shown[word] == "support.variable.metric.tide"
            elif word in UNITS:
                assert shown[word] == "keyword.other.unit.tide"


@pytest.mark.parametrize(
    ("line", "word", "scope"),
    [
        ("  over     6h step 5m", "h", "keyword.other.unit.tide"),
        ("  over     6h step 5m", "step", "keyword.other.tide"),
        ("  rank bottom 20% of pop", "bottom", "constant.language.tide"),
        ("  rank bottom 20% of pop", "%", "keyword.other.unit.tide"),
        ("  given 192.0.2.0/24 in fra2", "192.0.2.0/24", "constant.other.prefix.tide"),
        ("  given 2001:db8:1::/48 in fra2", "2001:db8:1::/48", "constant.other.prefix.tide"),
        ("  active 2026-12-01T06:00Z until 2027-01-01", "2026-12-01T06:00Z", "constant.other.time.tide"),
        ("  measure rtt by prefix /24 /56", "/24", "constant.numeric.length.tide"),
        ("  override fra2 { when transfer_size >= 1 MB }", "when", "keyword.other.clause.tide"),
        ("select slow_clients {", "slow_clients", "entity.name.type.tide"),
        ('test "a # in a name" {', '"a # in a name"', "entity.name.function.tide"),
        ("  hold 2h # rtt", "# rtt", "comment.line.number-sign.tide"),
    ],
)
def test_a_word_has_the_colour_of_what_it_is(line: str, word: str, scope: str) -> None:
    assert colours(line)[word] == scope
