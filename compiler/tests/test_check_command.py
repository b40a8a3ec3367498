"""`tidegate check` as people and pipelines use it: what it prints, what it changes, how it exits."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result
from tidegate.cli import main
from tidegate_dsl.diagnostics import CODES

ROOT = Path(__file__).parents[2]
TIDEGATE = Path(sys.executable).parent / "tidegate"
HOSTS = (ROOT / "inventory" / "hosts.yml").read_text(encoding="utf-8")
GOOD = """\
edition 2026.1
inventory "inventory"

initcwnd ipv6_start {
  for ipv6
  in  all
  set initcwnd 20 segments
}
"""
ALLOWED = """\
edition 2026.1
inventory "inventory"

select slow {  # allow W101: its rule comes next week
  measure delivery_rate by prefix /24 /56
  from    traffic client
  over    1h step 5m
  rank    bottom 20% of pop
}

test "always slow" {
  given  192.0.2.0/24 in fra2 membership "1..."
  expect slow includes 192.0.2.0/24
}
"""
BAD = GOOD.replace("in  all", "in  euorpe").replace("20 segments", "20 packets")
WRONG = GOOD.replace("in  all", "in  nowhere_at_all")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with an inventory and policies, where the command runs."""
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory" / "hosts.yml").write_text(HOSTS, encoding="utf-8")
    for name, text in (("good", GOOD), ("bad", BAD), ("wrong", WRONG)):
        (tmp_path / f"{name}.tide").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["check", *words], input=stdin)


def diagnostics(*words: str, stdin: str | None = None) -> list[dict[str, object]]:
    found = json.loads(check("--json", *words, stdin=stdin).stdout)["diagnostics"]
    assert isinstance(found, list)
    return found


@pytest.mark.usefixtures("place")
class TestAnswer:
    def test_yes_is_0(self) -> None:
        done = check("good.tide")
        assert (done.exit_code, done.stdout) == (0, "good.tide: no errors\n")

    def test_no_is_1(self) -> None:
        done = check("wrong.tide")
        assert done.exit_code == 1
        assert done.stdout.startswith("error[N104]: the inventory has no POP or group `nowhere_at_all`\n")
        assert done.stdout.endswith("\nwrong.tide: 1 error\n")

    @pytest.mark.parametrize(
        "words",
        [
            ("missing.tide",),
            (),
            ("missing.tide", "inventory/nothing.tide"),
            ("--diff", "good.tide"),
            ("--fix", "--diff", "--json", "good.tide"),
            ("--fix", "-"),
            ("-", "-"),
            ("inventory",),
            ("--explain", "C999"),
            ("--format", "xml", "good.tide"),
        ],
    )
    def test_what_can_not_be_answered_is_2(self, words: tuple[str, ...]) -> None:
        done = check(*words)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr

    def test_files_are_told_apart_and_counted(self) -> None:
        done = check("good.tide", "bad.tide", "wrong.tide")
        places = [line.strip() for line in done.stdout.splitlines() if "-->" in line]
        assert places == ["--> bad.tide:6:7", "--> bad.tide:7:16", "--> wrong.tide:6:7"]
        assert done.stdout.endswith("checked 3 files: 3 errors\n")

    def test_a_file_that_can_not_be_read_keeps_no_other_from_being_checked(self, place: Path) -> None:
        (place / "latin.tide").write_bytes(b"# caf\xe9\n" + GOOD.encode())
        done = check("latin.tide", "bad.tide", "missing.tide", "good.tide")
        assert done.exit_code == 2
        assert re.findall("--> (.*)", done.stdout) == ["bad.tide:6:7", "bad.tide:7:16"]
        assert done.stdout.endswith("checked 2 files: 2 errors\n")
        assert done.stderr.splitlines() == [
            "error: latin.tide:1: the file is not UTF-8 text: byte 0xe9",
            "error: can not read missing.tide: no such file or directory",
        ]
        told = json.loads(check("--json", "missing.tide", "good.tide").stdout)
        assert (told["ok"], told["files"], told["diagnostics"]) == (False, 1, [])

    def test_a_file_that_can_not_be_read_keeps_no_other_from_being_fixed(self, place: Path) -> None:
        assert check("--fix", "missing.tide", "bad.tide").exit_code == 2
        assert "in  europe" in (place / "bad.tide").read_text(encoding="utf-8")

    def test_quiet_leaves_out_the_summary(self) -> None:
        assert check("--quiet", "good.tide").stdout == ""
        assert check("--quiet", "wrong.tide").stdout.endswith("`sin1`\n")

    def test_a_warning_is_a_no_only_with_strict(self, place: Path) -> None:
        text = (ROOT / "docs" / "errors" / "W102.md").read_text(encoding="utf-8")
        policy = text.partition("```tide wrong\n")[2].partition("```")[0]
        (place / "warned.tide").write_text(policy.replace("../../inventory", "inventory"), encoding="utf-8")
        assert check("warned.tide").exit_code == 0
        assert check("--strict", "warned.tide").exit_code == 1
        assert json.loads(check("--strict", "--json", "warned.tide").stdout)["ok"] is False
        assert check("--strict", "good.tide").exit_code == 0


@pytest.mark.usefixtures("place")
class TestInput:
    def test_a_directory_stands_for_every_policy_below_it(self, place: Path) -> None:
        (place / "below").mkdir()
        (place / "below" / "a.tide").write_text(WRONG.replace('"inv', '"../inv'), encoding="utf-8")
        (place / "below" / "notes.txt").write_text("no policy", encoding="utf-8")
        found = [str(each["path"]) for each in diagnostics(".", "wrong.tide")]
        assert found == ["bad.tide", "bad.tide", "below/a.tide", "wrong.tide"]

    def test_standard_input_starts_where_it_is(self) -> None:
        assert check("-", stdin=GOOD).stdout == "<stdin>: no errors\n"

    def test_standard_input_can_stand_for_a_file(self, place: Path) -> None:
        (place / "below").mkdir()
        text = WRONG.replace('"inv', '"../inv')
        (found,) = diagnostics("-", "--stdin-filename", "below/new.tide", stdin=text)
        assert (found["path"], found["code"]) == ("below/new.tide", "N104")

    def test_standard_input_that_is_no_text(self) -> None:
        done = CliRunner().invoke(main, ["check", "-"], input=b"edition\n\xff")
        assert (done.exit_code, done.stdout) == (2, "")
        assert "<stdin>:2: the file is not UTF-8 text" in done.stderr


@pytest.mark.usefixtures("place")
class TestFixes:
    def test_are_made_and_told(self, place: Path) -> None:
        (place / "bad.tide").chmod(0o640)
        done = check("--fix", "bad.tide")
        assert done.stdout.splitlines() == [
            "bad.tide:6: fixed N104: write `europe`",
            "bad.tide:7: fixed T103: write `20 segments`",
            "bad.tide: no errors",
        ]
        assert done.exit_code == 0
        assert (place / "bad.tide").read_text(encoding="utf-8") == GOOD.replace("all", "europe")
        assert (place / "bad.tide").stat().st_mode & 0o777 == 0o640
        assert sorted(path.name for path in place.iterdir()) == [
            "bad.tide",
            "good.tide",
            "inventory",
            "wrong.tide",
        ]

    def test_can_be_shown_only(self, place: Path) -> None:
        done = check("--fix", "--diff", "bad.tide", "good.tide")
        changed = [line for line in done.stdout.splitlines() if line[0] in "+-"]
        assert changed == [
            "--- bad.tide",
            "+++ bad.tide",
            "-  in  euorpe",
            "-  set initcwnd 20 packets",
            "+  in  europe",
            "+  set initcwnd 20 segments",
        ]
        assert done.exit_code == 1
        assert (place / "bad.tide").read_text(encoding="utf-8") == BAD

    def test_of_standard_input_can_be_shown(self) -> None:
        assert "+  in  europe\n" in check("--fix", "--diff", "-", stdin=BAD).stdout

    def test_leave_a_link_a_link(self, place: Path) -> None:
        (place / "link.tide").symlink_to("bad.tide")
        check("--fix", "link.tide")
        assert (place / "link.tide").is_symlink()
        assert "europe" in (place / "bad.tide").read_text(encoding="utf-8")

    def test_leave_what_has_no_fix(self, place: Path) -> None:
        before = (place / "wrong.tide").stat().st_mtime_ns
        assert check("--fix", "wrong.tide").exit_code == 1
        assert (place / "wrong.tide").stat().st_mtime_ns == before

    def test_bring_hidden_mistakes_to_light_and_fix_them_too(self, place: Path) -> None:
        hidden = GOOD.replace("set initcwnd 20 segments", "sett initcwnd 20 packets")
        (place / "hidden.tide").write_text(hidden, encoding="utf-8")
        done = json.loads(check("--fix", "--json", "hidden.tide").stdout)
        assert [made["code"] for made in done["fixed"]] == ["P102", "T103"]
        assert done["ok"] is True


@pytest.mark.usefixtures("place")
class TestFormats:
    def test_json_is_format_json(self) -> None:
        assert check("--json", "bad.tide").stdout == check("--format", "json", "bad.tide").stdout

    def test_json_has_places_page_and_fix(self) -> None:
        first, _ = diagnostics("bad.tide")
        start = BAD.index("euorpe")
        assert first == {
            "code": "N104",
            "page": "docs/errors/N104.md",
            "severity": "error",
            "message": "the inventory has no POP or group `euorpe`",
            "path": "bad.tide",
            "line": 6,
            "column": 7,
            "end_column": 13,
            "byte": start,
            "end_byte": start + 6,
            "notes": [],
            "help": "did you mean `europe`?",
            "fix": {
                "title": "write `europe`",
                "edits": [{"byte": start, "end_byte": start + 6, "text": "europe"}],
            },
        }

    def test_of_a_long_line_only_what_stands_around_the_mistake_is_shown(self, place: Path) -> None:
        many = ", ".join(["ams1"] * 200)
        (place / "long.tide").write_text(
            GOOD.replace("in  all", f"in  {many}, nowhere_at_all, {many}"), encoding="utf-8"
        )
        done = check("long.tide").stdout.splitlines()
        at = next(number for number, line in enumerate(done) if "nowhere_at_all" in line and "|" in line)
        assert len(done[at]) < 220
        assert done[at].count("…") == 2
        assert done[at].index("nowhere_at_all") == done[at + 1].index("^")
        assert done[at + 1].count("^") == len("nowhere_at_all")

    @pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
    def test_colour_is_for_terminals_that_want_it(self, no_color: str, coloured: bool) -> None:
        ours, theirs = pty.openpty()
        environment = {**os.environ, "NO_COLOR": no_color}
        subprocess.run(
            [TIDEGATE, "check", "wrong.tide"], stdout=theirs, env=environment, check=False, timeout=60
        )
        os.close(theirs)
        assert (b"\x1b[1;31merror[N104]\x1b[0m" in os.read(ours, 4096)) == coloured
        os.close(ours)

    def test_a_pipe_gets_no_colour(self) -> None:
        assert "\x1b" not in check("wrong.tide").stdout


REGION = {
    "type": "object",
    "required": ["startLine", "startColumn", "endLine", "endColumn"],
    "additionalProperties": False,
    "properties": {
        key: {"type": "integer", "minimum": 1} for key in ("startLine", "startColumn", "endLine", "endColumn")
    },
}
MESSAGE = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string", "minLength": 1}},
}
ARTIFACT = {
    "type": "object",
    "required": ["uri"],
    "properties": {"uri": {"type": "string", "pattern": r"^[^ \\]+$"}},
}
# What SARIF 2.1.0 requires of the objects that we write (sections 3.13, 3.14, 3.19, 3.27, 3.30, 3.49, 3.55 to 3.57).
SARIF = {
    "type": "object",
    "required": ["version", "runs", "$schema"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results", "columnKind"],
                "properties": {
                    "columnKind": {"const": "unicodeCodePoints"},
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "version", "rules"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id", "shortDescription", "help"],
                                            "properties": {"shortDescription": MESSAGE, "help": MESSAGE},
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
                            "properties": {
                                "level": {"enum": ["error", "warning", "note", "none"]},
                                "message": MESSAGE,
                                "locations": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["physicalLocation"],
                                        "properties": {
                                            "physicalLocation": {
                                                "type": "object",
                                                "required": ["artifactLocation", "region"],
                                                "properties": {
                                                    "artifactLocation": ARTIFACT,
                                                    "region": REGION,
                                                },
                                            }
                                        },
                                    },
                                },
                                "suppressions": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["kind"],
                                        "properties": {"kind": {"enum": ["inSource", "external"]}},
                                    },
                                },
                                "fixes": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["artifactChanges"],
                                        "properties": {
                                            "description": MESSAGE,
                                            "artifactChanges": {
                                                "type": "array",
                                                "minItems": 1,
                                                "items": {
                                                    "type": "object",
                                                    "required": ["artifactLocation", "replacements"],
                                                    "properties": {
                                                        "artifactLocation": ARTIFACT,
                                                        "replacements": {
                                                            "type": "array",
                                                            "minItems": 1,
                                                            "items": {
                                                                "type": "object",
                                                                "required": ["deletedRegion"],
                                                                "properties": {"deletedRegion": REGION},
                                                            },
                                                        },
                                                    },
                                                },
                                            },
                                        },
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


class TestSarif:
    @staticmethod
    def run(*words: str) -> dict[str, object]:
        log = json.loads(check("--format", "sarif", *words).stdout)
        jsonschema.validate(log, SARIF)
        run = log["runs"][0]
        assert isinstance(run, dict)
        return run

    def test_every_mistake_of_the_language_is_valid(self) -> None:
        run = self.run(str(ROOT / "dsl" / "tests" / "mistakes"))
        results, rules = run["results"], run["tool"]["driver"]["rules"]  # type: ignore[index]
        assert len(results) > 80  # type: ignore[arg-type]
        for result in results:  # type: ignore[attr-defined]
            rule = rules[result["ruleIndex"]]
            assert rule["id"] == result["ruleId"]
            assert rule["shortDescription"]["text"] == CODES[rule["id"]]
            assert rule["help"]["markdown"].startswith(f"# {rule['id']}")

    def test_a_silenced_warning_is_suppressed(self, place: Path) -> None:
        (place / "allowed.tide").write_text(ALLOWED, encoding="utf-8")
        (found,) = self.run("allowed.tide")["results"]  # type: ignore[misc]
        assert (found["ruleId"], found["suppressions"]) == ("W101", [{"kind": "inSource"}])
        assert check("--strict", "allowed.tide").exit_code == 0

    def test_no_mistake_is_a_run_without_results(self, place: Path) -> None:
        assert self.run(str(place / "good.tide"))["results"] == []

    def test_columns_count_characters_and_a_removed_line_ends_on_the_next(self, place: Path) -> None:
        text = (
            GOOD.replace("  in  all\n", "  in  all\n  in  all\n")
            + '\ntest "𝄞é" { given 192.0.2.300/24 in fra2 membership "1..." }\n'
        )
        (place / "odd name.tide").write_text(text, encoding="utf-8")
        results = self.run("odd name.tide")["results"]
        by_code = {found["ruleId"]: found for found in results}  # type: ignore[attr-defined]
        twice, prefix = by_code["P108"], by_code["T107"]
        assert twice["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "odd%20name.tide"}
        (change,) = twice["fixes"][0]["artifactChanges"]
        assert change["replacements"] == [
            {
                "deletedRegion": {"startLine": 7, "startColumn": 1, "endLine": 8, "endColumn": 1},
                "insertedContent": {"text": ""},
            }
        ]
        assert prefix["locations"][0]["physicalLocation"]["region"]["startColumn"] == 19


class TestExplain:
    @pytest.mark.parametrize("code", ["C101", "c101"])
    def test_prints_the_page(self, code: str) -> None:
        page = (ROOT / "docs" / "errors" / "C101.md").read_text(encoding="utf-8")
        assert check("--explain", code).stdout == page

    def test_names_a_code_that_is_near(self) -> None:
        done = check("--explain", "C1O1")
        assert (done.exit_code, done.stdout) == (2, "")
        assert "there is no code `C1O1`" in done.stderr


def test_what_a_check_does_not_need_is_not_loaded(place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", TIDEGATE, "check", place / "good.tide"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "tidegate_dsl" in loaded
    assert not loaded & {
        "rich",
        "jsonschema",
        "ansible",
        "clickhouse_connect",
        "chdb",
        "numpy",
        "pygls",
        "difflib",
    }


def test_the_commands_of_the_document_print_what_it_shows() -> None:
    """Run with TIDEGATE_WRITE_PAGES=1 to write what they print now."""
    path = ROOT / "docs" / "check.md"
    text = path.read_text(encoding="utf-8")
    environment = {**os.environ, "PATH": f"{TIDEGATE.parent}:{os.environ['PATH']}"}

    def run(block: re.Match[str]) -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", block[1]],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.stderr == ""
        return f"```console\n$ {block[1]}\n{done.stdout}```\n"

    now, count = re.subn(r"```console\n\$ (.*)\n(?:.*\n)*?```\n", run, text)
    if os.environ.get("TIDEGATE_WRITE_PAGES") == "1":
        path.write_text(now, encoding="utf-8")
        text = now
    assert count == 4
    assert text == now
