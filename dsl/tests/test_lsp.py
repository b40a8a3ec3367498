"""The language server over its pipes, as an editor drives it."""

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from editor_client import Editor, Json, Refusal, editor
from tidegate_dsl.vocabulary import (
    DIRECTIONS,
    FAILURES,
    REQUIREMENTS,
    SIDES,
    TRAFFIC_CLASSES,
    VERDICTS,
    WINDOWS,
    WORD_MEANINGS,
)

HERE = Path(__file__).parent
LIMITS = HERE / "limits.yaml"

POLICY = """\
edition 2026.1
inventory "fleet"

select slow {
  measure delivery_rate by prefix /24 /56
  from traffic client where bytes_acked >= 100 KB
  over 6h step 5m
  rank bottom 20% of pop
  require duty_cycle >= 60%
}

apply bbr_for_slow {
  to slow
  in all except iad1
  set congestion_control bbr
  when transfer_size >= 100 KB
  hold_out 10% of prefixes
  override fra2 { when transfer_size >= 250 KB }
}

guard watchdog {
  watch bbr_for_slow
  limit churn <= 20% per run
}

test "slow all the time" {
  given 198.51.100.0/24 in fra2 membership "1..."
  expect slow includes 198.51.100.0/24
}
"""


@pytest.fixture(scope="module")
def shared() -> Iterator[Editor]:
    with editor("--limits", str(LIMITS)) as made:
        yield made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "fleet").symlink_to(HERE / "fleet")
    return tmp_path / "edge.tide"


def caret(text: str) -> tuple[str, int, int]:
    """A text without its `^`, and the caret's line and UTF-16 column there."""
    before, after = text.split("^")
    line = before.rpartition("\n")[2]
    return before + after, before.count("\n"), len(line.encode("utf-16-le")) // 2


def labels(shared: Editor, path: Path, text: str) -> list[str]:
    whole, line, character = caret(text)
    shared.open(path, whole)
    return [item["label"] for item in shared.at("completion", path, line, character)]


def applied(text: str, edits: Json) -> str:
    """The text behind edits, as an editor makes them: positions in UTF-16, the last first."""
    for edit in sorted(edits, key=lambda edit: tuple(edit["range"]["start"].values()), reverse=True):
        units = text.encode("utf-16-le", "surrogatepass")
        starts = [0, *(match.end() for match in re.finditer("\n\0".encode("latin-1"), units))]
        start, end = (
            starts[edit["range"][side]["line"]] + 2 * edit["range"][side]["character"]
            for side in ("start", "end")
        )
        text = (units[:start] + edit["newText"].encode("utf-16-le") + units[end:]).decode("utf-16-le")
    return text


def insertion(line: int, character: int, text: str) -> Json:
    at = {"line": line, "character": character}
    return {"range": {"start": at, "end": at}, "text": text}


def test_a_mistake_shows_as_it_is_typed_and_goes_when_it_is_mended(shared: Editor, path: Path) -> None:
    assert shared.open(path, POLICY) == []

    line = POLICY.split("\n").index("  rank bottom 20% of pop")
    found = shared.change(path, insertion(line, 6, "x"))
    assert [(each["code"], each["severity"], each["source"]) for each in found] == [("P102", 1, "tidegate")]
    assert found[0]["range"]["start"]["line"] == line
    assert "help:" in found[0]["message"]

    taken = {"start": {"line": line, "character": 6}, "end": {"line": line, "character": 7}}
    assert shared.change(path, {"range": taken, "text": ""}) == []


def test_changes_of_one_message_are_made_one_after_the_other(shared: Editor, path: Path) -> None:
    shared.open(path, "")
    whole = {"text": POLICY}
    assert shared.change(path, whole, insertion(0, 0, "# a\n"), insertion(1, 0, "# b\n")) == []
    assert shared.change(path, insertion(3, len('inventory "fleet'), "x"))[0]["range"]["start"]["line"] == 3


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_positions_count_what_the_editor_counts(path: Path, encoding: str) -> None:
    comment = "é 日本 😀 \u2028 \f "  # no line ends for an editor, though Python splits lines there
    text = POLICY.replace("edition", f"# {comment}\nedition").replace("slow all", "😀 slow all")
    units = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    name = "utf-16-le" if encoding == "utf-16" else "utf-32-le" if encoding == "utf-32" else encoding
    with editor("--limits", str(LIMITS), encodings=(encoding,)) as made:
        assert made.capabilities["positionEncoding"] == encoding
        assert made.open(path, text) == []
        found = made.at("prepareRename", path, text[: text.index("😀 slow")].count("\n"), 7)
        assert found["placeholder"] == "😀 slow all the time"
        width = len("😀 slow all the time".encode(name)) // units
        assert found["range"]["end"]["character"] - found["range"]["start"]["character"] == width
        behind = len(f"# {comment}".encode(name)) // units
        assert made.change(path, insertion(0, behind, "日")) == []
        assert made.change(path, insertion(0, 0, "x"))[0]["range"]["start"] == {"line": 0, "character": 0}


def test_a_lone_carriage_return_ends_a_line_of_the_editor_only(shared: Editor, path: Path) -> None:
    found = shared.open(path, POLICY.replace("edition 2026.1\n", "# old\redition 2026.1\r\n"))
    assert [each["code"] for each in found] == ["P107"]  # to the language the edition is in the comment
    assert shared.at("hover", path, 5, 4)["range"]["start"] == {"line": 5, "character": 2}


def test_an_inventory_is_found_beside_the_policy_and_read_again_when_it_changes(
    shared: Editor, tmp_path: Path
) -> None:
    (tmp_path / "fleet").mkdir()
    hosts = tmp_path / "fleet" / "hosts.yml"
    hosts.write_text((HERE / "fleet" / "hosts.yml").read_text(encoding="utf-8"), encoding="utf-8")
    path = tmp_path / "edge.tide"
    assert shared.open(path, POLICY) == []

    hosts.write_text(hosts.read_text(encoding="utf-8").replace("fra2", "muc1"), encoding="utf-8")
    shared.notify("textDocument/didSave", textDocument={"uri": path.as_uri()})
    codes = [each["code"] for each in shared.diagnostics(path)]
    assert set(codes) == {"N104"}
    shared.notify("textDocument/didClose", textDocument={"uri": path.as_uri()})
    assert shared.diagnostics(path) == []


def test_broken_limits_leave_the_last_good_ones(tmp_path: Path, path: Path) -> None:
    limits = tmp_path / "limits.yaml"
    limits.write_text(LIMITS.read_text(encoding="utf-8"), encoding="utf-8")
    with editor("--limits", str(limits)) as made:
        assert made.open(path, POLICY) == []
        limits.write_text("limits: [", encoding="utf-8")
        assert made.change(path, insertion(0, 0, "# x\n")) == []
        good = LIMITS.read_text(encoding="utf-8")
        limits.write_text(good.replace("[bbr, cubic, reno]", "[cubic]"), encoding="utf-8")
        assert [each["code"] for each in made.change(path, insertion(0, 0, "# y\n"))] == ["N106"]


COMPLETIONS = {
    "clauses that are missing": (
        "select a {\n  over 6h step 5m\n  ^\n}\n",
        {"measure METRIC by prefix /LENGTH /LENGTH", "require samples >= N per window", "hold DURATION"},
        {"over DURATION step DURATION", "to SELECT", "select"},
    ),
    "one requirement is not another": (
        "select a {\n  require windows >= 3\n  req^\n}\n",
        {"require duty_cycle >= N% [leave < N%]"},
        {"require windows >= N [leave < N]"},
    ),
    "outside of blocks": ("edition 2026.1\n^\n", {"select", "guard", 'inventory "PATH"'}, {"edition 2026.1"}),
    "metrics of the place": (
        "select a {\n  measure ^ by prefix /24 /56\n}\n",
        {"rtt", "delivery_rate"},
        {"bytes_acked", "goodput", "app_limited"},
    ),
    "metrics of samples": (
        "select a {\n  from traffic client where ^\n}\n",
        {"rtt", "bytes_acked", "app_limited", "not"},
        {"goodput"},
    ),
    "a rank compares what is measured": (
        "select a {\n  measure rtt by prefix /24 /56\n  rank top 5% of pop and ^\n}\n",
        {"rtt"},
        {"delivery_rate"},
    ),
    "POPs and groups": (
        'inventory "fleet"\napply a {\n  in europe, ^\n}\n',
        {"all", "ams1", "fra2", "iad1", "americas"},
        {"europe", "bbr", "except"},
    ),
    "what follows a POP": ('inventory "fleet"\napply a {\n  in all ^\n}\n', {"except"}, {"fra2"}),
    "a POP to override": (
        'inventory "fleet"\napply a {\n  override ^\n}\n',
        {"ams1", "fra2"},
        {"all", "europe"},
    ),
    "clauses of an override": (
        'inventory "fleet"\napply a {\n  override fra2 { ^ }\n}\n',
        {"when transfer_size >= SIZE", "limit N prefixes per pop"},
        {"to SELECT"},
    ),
    "what follows a count": ("apply a {\n  limit 5 ^\n}\n", {"new", "prefixes"}, {"KB"}),
    "what follows a count in an override": (
        "apply a {\n  override fra2 { limit 5 ^ }\n}\n",
        {"prefixes"},
        {"new"},
    ),
    "metrics of an exclude": ("select a {\n  exclude ^\n}\n", {"rtt", "goodput"}, {"not", "lost"}),
    "selects": ("select a {\n}\nselect b {\n}\napply c {\n  to ^\n}\n", {"a", "b"}, {"c"}),
    "applies": ("apply c {\n}\nguard d {\n  watch ^\n}\n", {"c"}, {"d"}),
    "windows that a host learns or offers": ("learn a {\n  set ^\n}\n", {"initcwnd", "initrwnd"}, {"segments"}),
    "what follows a learned window": ("learn a {\n  set initcwnd ^\n}\n", {"between"}, {"initrwnd"}),
    "one window is not the other": (
        "learn a {\n  set initcwnd between 10 and 100 segments\n  ^\n}\n",
        {"set initrwnd N segments", "hold_out N% of destinations"},
        {"set initcwnd between N and N segments", "hold_out N% of prefixes"},
    ),
    "what is held out of what is learned": ("learn a {\n  hold_out 10% of ^\n}\n", {"destinations"}, {"prefixes"}),
    "algorithms": ("apply c {\n  set congestion_control ^\n}\n", {"bbr", "cubic", "reno"}, set()),
    "units of a duration": ("select a {\n  over 6 ^\n}\n", {"ms", "h", "d"}, {"KB", "%", "step"}),
    "units at a number": ("select a {\n  over 6h step 5^\n}\n", {"m", "us"}, {"KB"}),
    "units of a metric": ("select a {\n  exclude rtt < 10m^\n}\n", {"ms", "us"}, {"Mbps"}),
    "what follows a flag": ("select a {\n  from traffic client where app_limited ^\n}\n", {"and"}, {"KB"}),
    "a metric is compared first": ("select a {\n  from traffic client where rtt ^\n}\n", set(), {"and"}),
    "percent": ("select a {\n  rank bottom 20^\n}\n", {"%"}, {"KB"}),
    "what follows a value": ("select a {\n  over 6h ^\n}\n", {"step"}, {"ms"}),
    "reasons": (
        "test \"x\" {\n  expect a excludes 192.0.2.0/24 because ^\n}\n",
        {"windows", "duty_cycle", "flap_rate"},
        set(),
    ),
    "prefixes of the test": (
        'test "x" {\n  given 192.0.2.0/24 in fra2 membership "1..."\n  expect a includes ^\n}\n',
        {"192.0.2.0/24"},
        set(),
    ),
    "percentiles": ("guard g {\n  abort when rtt ^\n}\n", {"p10", "p50"}, {"rtt"}),
    "a file full of mistakes": (
        'nonsense }\nselect a {\n  measure "\n  rank bottom\napply b {\n  to ^',
        {"a"},
        {"b"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", COMPLETIONS)
def test_completion_proposes_what_the_grammar_takes(shared: Editor, path: Path, case: str) -> None:
    text, wanted, unwanted = COMPLETIONS[case]
    found = set(labels(shared, path, text))
    assert wanted <= found
    assert not unwanted & found


@pytest.mark.parametrize(
    "text",
    ["# over ^\n", 'inventory "^"\n', "select ^\n", "select a {\n  over over ^\n}\n"],
    ids=["comment", "string", "new name", "mistake before it"],
)
def test_completion_is_silent_where_it_knows_nothing(shared: Editor, path: Path, text: str) -> None:
    assert labels(shared, path, text) == []


def test_a_clause_comes_as_a_snippet_or_as_its_first_word(shared: Editor, path: Path) -> None:
    text, line, character = caret("select a {\n  ra^\n}\n")
    shared.open(path, text)
    items = shared.at("completion", path, line, character)
    rank = next(item for item in items if item["label"].startswith("rank bottom"))
    assert rank["textEdit"]["newText"] == "rank ${1|bottom,top|} ${2:N}% of pop"
    assert rank["textEdit"]["range"] == {
        "start": {"line": 1, "character": 2},
        "end": {"line": 1, "character": 4},
    }
    with editor("--limits", str(LIMITS), snippets=False) as plain:
        plain.open(path, text)
        items = plain.at("completion", path, line, character)
        assert "rank" in [item["textEdit"]["newText"] for item in items]
        assert not [item for item in items if "$" in item["textEdit"]["newText"]]


@pytest.mark.parametrize(
    ("pointed", "shown"),
    [
        ("sel^ect slow", "persistently slow"),
        ("ra^nk bottom", "rank bottom|top N% of pop"),
        ("delivery^_rate", "rate at which data was delivered"),
        ("ov^er 6h", "the lookback, and its windows"),
        ("over 6^h", "21,600,000,000 microseconds"),
        ("100 K^B\n  hold_out", "1 KB = 1,000 bytes"),
        ("20^% of pop", "200,000 parts per million"),
        ("in a^ll", "`ams1`, `fra2`, `iad1`"),
        ("override fr^a2", "fra2-edge1"),
        ("to sl^ow", "rank bottom 20% of pop"),
        ("watch bbr_for^_slow", "set congestion_control bbr"),
        ("require duty^_cycle", "of all windows of the lookback"),
        ("traffic cl^ient", "none of the other classes"),
        ("slow inclu^des", "the prefix qualifies"),
    ],
)
def test_hover_shows_the_specification(shared: Editor, path: Path, pointed: str, shown: str) -> None:
    plain = pointed.replace("^", "")
    assert plain in POLICY
    text, line, character = caret(POLICY.replace(plain, pointed, 1))
    shared.open(path, text)
    assert shown in shared.at("hover", path, line, character)["contents"]["value"]


def test_every_word_that_is_chosen_has_a_meaning() -> None:
    choices = (DIRECTIONS, FAILURES, REQUIREMENTS, SIDES, TRAFFIC_CLASSES, VERDICTS, WINDOWS)
    assert set(WORD_MEANINGS) == {"leave", "selected", *chain.from_iterable(choices)}


def test_definitions_of_names_and_of_the_inventory(shared: Editor, path: Path) -> None:
    lines = POLICY.split("\n")
    shared.open(path, POLICY)
    for use, name in (("  to slow", "slow"), ("  watch bbr_for_slow", "bbr_for_slow")):
        (found,) = shared.at("definition", path, lines.index(use), len(use))
        start, end = (found["range"][side]["character"] for side in ("start", "end"))
        assert lines[found["range"]["start"]["line"]][start:end] == name
        assert lines[found["range"]["start"]["line"]].endswith(f"{name} {{")
    (file,) = shared.at("definition", path, 1, 13)
    assert file["uri"] == (HERE / "fleet" / "hosts.yml").resolve().as_uri()
    assert shared.at("definition", path, 0, 2) == []


def test_a_rename_changes_every_use_and_the_policy_stays_right(shared: Editor, path: Path) -> None:
    shared.open(path, POLICY)
    line = POLICY.split("\n").index("  to slow")
    where = shared.at("references", path, line, 6, context={"includeDeclaration": True})
    assert len(where) == 3
    assert len(shared.at("references", path, line, 6, context={"includeDeclaration": False})) == 2

    edits = shared.at("rename", path, line, 6, newName="sluggish")["changes"][path.as_uri()]
    renamed = applied(POLICY, edits)
    assert len(edits) == 3
    assert renamed.count("sluggish") == 3
    assert "bbr_for_slow" in renamed
    assert shared.open(path, renamed) == []


@pytest.mark.parametrize(
    ("line", "new", "why"),
    [
        ("  to slow", "Slow", "is no name"),
        ("  to slow", "", "is no name"),
        ("  watch bbr_for_slow", "other", "another apply is called `other`"),
        ("  rank bottom 20% of pop", "x", "only the name of a block"),
    ],
)
def test_a_rename_that_would_break_the_policy_is_refused(
    shared: Editor, path: Path, line: str, new: str, why: str
) -> None:
    text = POLICY + "\napply other {\n}\n"
    shared.open(path, text)
    with pytest.raises(Refusal, match=re.escape(why).replace("a\\ apply", "an?\\ apply")):
        shared.at("rename", path, text.split("\n").index(line), len(line), newName=new)


def test_a_fix_makes_the_mistake_go(shared: Editor, path: Path) -> None:
    text = POLICY.replace("given 198.51.100.0/24", "given 198.51.100.7/24")
    (found, *_) = shared.open(path, text)
    assert found["code"] == "T107"
    offered = shared.about("codeAction", path, range=found["range"], context={"diagnostics": [found]})
    (fix,) = [each for each in offered if each.get("isPreferred")]
    assert fix["kind"] == "quickfix"
    assert fix["diagnostics"][0]["code"] == "T107"
    assert shared.open(path, applied(text, fix["edit"]["changes"][path.as_uri()])) == []


UNUSED = """
select unused {
  measure rtt by prefix /24 /56
  from traffic client
  over 6h step 5m
  rank top 5% of pop
}
"""


@pytest.mark.parametrize("comment", ["", "  # kept for later 😀"])
def test_a_warning_can_be_silenced_where_it_stands(shared: Editor, path: Path, comment: str) -> None:
    text = POLICY + UNUSED.replace("unused {", "unused {" + comment)
    (found,) = shared.open(path, text)
    assert (found["code"], found["severity"]) == ("W101", 2)
    offered = shared.about("codeAction", path, range=found["range"], context={"diagnostics": [found]})
    (silence,) = [each for each in offered if each["title"].startswith("Silence")]
    assert not silence["isPreferred"]
    silenced = applied(text, silence["edit"]["changes"][path.as_uri()])
    assert comment in silenced
    assert shared.open(path, silenced) == []


def test_formatting_is_that_of_fmt_and_changes_only_lines_that_differ(shared: Editor, path: Path) -> None:
    text = POLICY.replace("  over 6h step 5m", "      over    6h   step 5m  # a day: 😀")
    shared.open(path, text)
    options = {"tabSize": 2, "insertSpaces": True}
    formatted = applied(text, shared.about("formatting", path, options=options))
    shared.open(path, formatted)
    assert shared.about("formatting", path, options=options) == []
    assert "# a day: 😀" in formatted
    assert formatted.split() == text.split()

    shared.open(path, text.replace("rank bottom", "rank"))
    assert shared.about("formatting", path, options=options) == []


def test_the_outline_and_the_folds_are_the_blocks(shared: Editor, path: Path) -> None:
    shared.open(path, POLICY)
    symbols = shared.about("documentSymbol", path)
    assert [(each["name"], each["detail"]) for each in symbols] == [
        ("slow", "select"),
        ("bbr_for_slow", "apply"),
        ("watchdog", "guard"),
        ("slow all the time", "test"),
    ]
    assert [each["name"] for each in symbols[2]["children"]] == ["watch", "limit"]
    folds = shared.about("foldingRange", path)
    lines = POLICY.split("\n")
    assert {lines[each["startLine"]].split()[0] for each in folds} == {"select", "apply", "guard", "test"}
    assert {lines[each["endLine"]] for each in folds} == {"}"}


def test_the_server_ends_when_it_is_told(path: Path) -> None:
    with editor("--limits", str(LIMITS)) as made:
        made.open(path, POLICY)
        assert made.quit() == 0


def test_a_document_that_is_not_open_is_an_error_and_no_end(shared: Editor, path: Path) -> None:
    with pytest.raises(Refusal, match="is not open"):
        shared.at("hover", path, 0, 0)
    assert shared.open(path, POLICY) == []


def test_without_the_extra_the_command_names_it() -> None:
    hide = "import sys; sys.modules['pygls'] = None; from tidegate.cli import main; main(['lsp'])"
    done = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "tidegate[editor]" in done.stderr


def test_limits_that_can_not_be_read_are_bad_input(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("tidegate")), "lsp", "--limits", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert "can not read" in done.stderr
