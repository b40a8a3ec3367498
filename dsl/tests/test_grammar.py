"""The grammar of the specification and the parser take the same texts.

Which codes stand for which sentence of section 2: a text is outside of the grammar where the lexer or the parser
says so (L001 to L003, P101 to P106), where a number lacks its unit or has another (T101 to T103), where a word is no
metric that may stand there (N102, N103) or no percentile (T105 at a word), and where the edition has a unit (N101 at
more than a number). All other codes are about what a sentence means.
"""

import re
from functools import lru_cache
from pathlib import Path
from random import Random

import pytest
from ebnf import Node, read_grammar, recognises
from hypothesis import given, settings
from hypothesis import strategies as st
from sentences import TEXTS, Writer, layout
from terminals import is_a, metrics_stand_right, tokens_of
from tidegate_dsl import CheckResult, Diagnostic, check_text, read_limits
from tidegate_dsl.diagnostics import Source
from tidegate_dsl.syntax import Kind
from tidegate_dsl.vocabulary import (
    BLOCKS,
    COMPARISONS,
    DIRECTIONS,
    FAILURES,
    FAMILIES,
    LEAVE,
    METRICS,
    OVERRIDE,
    REQUIREMENTS,
    SIDES,
    TOP_LEVEL,
    TRAFFIC_CLASSES,
    UNITS,
    VERDICTS,
)

HERE = Path(__file__).parent
SPEC = (HERE.parent / "SPEC.md").read_text(encoding="utf-8")
GRAMMAR = read_grammar(re.search(r"```ebnf\n(.*?)```", SPEC, re.DOTALL)[1])
LIMITS = read_limits(HERE / "limits.yaml")
EXAMPLES = [path.read_text(encoding="utf-8") for path in sorted((HERE.parent / "examples").glob("*.tide"))]
OF_GRAMMAR = {
    *("L001", "L002", "L003"),
    *("P101", "P102", "P103", "P104", "P105", "P106"),
    *("N102", "N103", "T101", "T102", "T103"),
}


def check(text: str) -> CheckResult:
    return check_text(text, str(HERE / "edge.tide"), limits=LIMITS, inventory=HERE / "fleet")


def is_of_grammar(found: Diagnostic, text: str) -> bool:
    marked = Source("", text).slice(found.span)
    match found.code:
        case "T105":
            return marked[0].isalpha()
        case "N101":
            return re.fullmatch(r"[0-9]+(\.[0-9]+)?", marked) is None
    return found.code in OF_GRAMMAR


def complaints(text: str) -> list[str]:
    """What the checker says against the grammar."""
    return [f"{d.code}: {d.message}" for d in check(text).diagnostics if is_of_grammar(d, text)]


def accepts(text: str) -> bool:
    tokens = tokens_of(text)
    return recognises(GRAMMAR, "file", tokens, is_a) and metrics_stand_right(tokens)


# --- sentences ------------------------------------------------------------------------------------------------


@st.composite
def sentences(draw: st.DrawFn) -> list[str]:
    random = draw(st.randoms(use_true_random=False))
    writer = Writer(GRAMMAR, lambda _, ways: random.randrange(ways))
    for _ in range(draw(st.integers(1, 4))):
        kind = random.choice(["head", "block", "block", "block"])
        writer.write(GRAMMAR.rules[kind], {})
        writer.words.append("\n")
    return writer.words


def covering() -> tuple[list[list[str]], set[Node]]:
    """Files, alike in every run, each of which adds a piece of the grammar to those before it; and all the pieces."""
    random = Random(1)
    visited: set[Node] = set()
    written = []
    for _ in range(5_000):
        writer = Writer(GRAMMAR, lambda _, ways: random.randrange(ways))
        writer.write(GRAMMAR.rules["file"], {})
        if writer.visited - visited:
            visited |= writer.visited
            written.append(writer.words)
    return written, visited


def test_every_piece_of_every_production_is_written_and_parsed() -> None:
    written, visited = covering()
    missed = [node for node in GRAMMAR.nodes() if node not in visited]
    assert [(node.kind, node.text) for node in missed] == []
    for number, words in enumerate(written):
        text = layout(words, Random(number))
        assert (complaints(text), accepts(text)) == ([], True), text


@settings(max_examples=150, deadline=None)
@given(sentences(), st.randoms(use_true_random=False))
def test_the_parser_takes_every_sentence_in_any_layout(words: list[str], random: Random) -> None:
    text = layout(words, random)
    assert accepts(text), text
    assert complaints(text) == [], text


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_are_sentences(text: str) -> None:
    assert accepts(text)


# --- and nothing else -----------------------------------------------------------------------------------------

POOL = sorted(
    {word for options in TEXTS.values() for word in options}
    | {node.text for node in GRAMMAR.nodes() if node.kind == "literal"}
    | {
        *METRICS,
        "\n",
        "5m",
        "20%",
        "10 segments",
        "100 KB",
        "5 Mbps",
        "p0",
        "p05",
        "p100",
        "6hstep",
        "40new",
        "0.5m",
        "nonsense",
        "5 parsecs",
        "==",
        "-1",
    }
)


@lru_cache
def words_of(text: str) -> tuple[str, ...]:
    return tuple("\n" if kind is Kind.NEWLINE else word for kind, word in tokens_of(text))


@st.composite
def mutations(draw: st.DrawFn, words: st.SearchStrategy[list[str]], most: int = 1) -> str:
    """A text with words deleted, doubled, replaced or swapped."""
    changed = draw(words)
    for _ in range(draw(st.integers(1, most))):
        at = draw(st.integers(0, max(0, len(changed) - 1)))
        way = draw(st.sampled_from(["delete", "double", "replace", "swap", "insert"]))
        match way:
            case "delete":
                del changed[at : at + 1]
            case "double":
                changed[at:at] = changed[at : at + 1]
            case "replace":
                changed[at : at + 1] = [draw(st.sampled_from(POOL))]
            case "insert":
                changed.insert(at, draw(st.sampled_from(POOL)))
            case "swap":
                other = draw(st.integers(0, max(0, len(changed) - 1)))
                if changed:
                    changed[at], changed[other] = changed[other], changed[at]
    return " ".join(changed)


@settings(max_examples=400, deadline=None)
@given(mutations(st.sampled_from(EXAMPLES).map(lambda text: list(words_of(text)))))
def test_one_changed_word_is_reported_just_when_it_leaves_the_grammar(text: str) -> None:
    """From a policy without a mistake, so that no other one hides it."""
    assert accepts(text) == (complaints(text) == []), (complaints(text), text)


@settings(max_examples=200, deadline=None)
@given(mutations(sentences(), most=4))
def test_what_is_no_sentence_is_never_clean_and_what_is_one_is_never_reported(text: str) -> None:
    """A mistake of meaning may hide one of grammar in the same clause: one mistake gives one error."""
    if accepts(text):
        assert complaints(text) == [], text
    else:
        assert check(text).policy is None, text


# --- the words ------------------------------------------------------------------------------------------------


def literals(name: str) -> set[str]:
    return {node.text for node in GRAMMAR.rules[name].walk() if node.kind == "literal"}


def firsts(name: str) -> set[str]:
    """The words that a clause of this production may start with."""
    found: set[str] = set()
    rule = GRAMMAR.rules[name]
    for option in rule.parts if rule.kind == "choice" else (rule,):
        node = option.parts[0] if option.kind == "sequence" else option
        found |= {node.text} if node.kind == "literal" else firsts(node.text)
    return found


@pytest.mark.parametrize("block", [*BLOCKS, "override"])
def test_the_grammar_has_the_clauses_of_every_block(block: str) -> None:
    assert firsts(block) == set(BLOCKS.get(block, OVERRIDE))


def test_the_grammar_has_the_word_lists_of_the_language() -> None:
    assert firsts("head") == set(TOP_LEVEL)
    assert firsts("block") == set(BLOCKS)
    assert literals("CLASS") == set(TRAFFIC_CLASSES)
    assert literals("SIDE") == set(SIDES)
    assert literals("COMPARE") == set(COMPARISONS)
    assert literals("DIRECTION") == set(DIRECTIONS)
    assert literals("VERDICT") == set(VERDICTS)
    assert literals("target") == set(FAMILIES)
    kinds = ("duration", "size", "rate", "ratio", "segments")
    assert {(unit, kind) for kind in kinds for unit in literals(kind)} == {
        (unit.name, unit.dimension) for unit in UNITS.values()
    }
    failures = next(part for part in GRAMMAR.rules["guard"].parts if part.parts[0].text == "on_failure")
    assert {node.text for node in failures.walk() if node.kind == "literal"} >= set(FAILURES)


def test_the_grammar_has_the_comparisons_of_requirements_and_their_leave() -> None:
    options = [part for part in GRAMMAR.rules["select"].parts if part.parts[0].text == "require"]
    assert {option.parts[1].text: option.parts[2].text for option in options} == REQUIREMENTS
    leaves = {
        option.parts[1].text: part.parts[0].parts[1].text
        for option in options
        for part in option.parts
        if part.kind == "optional"
    }
    assert leaves == LEAVE
