"""`tidegate fmt` as its user meets it: files, links, directories, pipes, terminals, and what it prints."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tidegate.cli import main

LOOSE = "edition   2026.1\r\n# why\nselect s{\n\n over 6 h step 5m# c\n}"
TIDY = "edition 2026.1\n\n# why\nselect s {\n  over     6h step 5m  # c\n}\n"
BROKEN = "select s {\n  hold\n}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fmt(*arguments: str, given: str | bytes = "") -> Result:
    return CliRunner().invoke(main, ["fmt", *arguments], input=given)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


class TestInPlace:
    def test_names_what_it_changed_and_says_nothing_the_second_time(self, here: Path) -> None:
        write(here / "loose.tide", LOOSE)
        write(here / "tidy.tide", TIDY)
        first, second = fmt("loose.tide", "tidy.tide"), fmt("loose.tide", "tidy.tide")
        assert (first.exit_code, first.stdout, first.stderr) == (0, "loose.tide\n", "")
        assert (second.exit_code, second.stdout) == (0, "")
        assert (here / "loose.tide").read_bytes().decode() == TIDY

    def test_leaves_a_formatted_file_untouched(self, here: Path) -> None:
        file = write(here / "tidy.tide", TIDY)
        before = file.stat()
        assert fmt("tidy.tide").exit_code == 0
        assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)

    def test_keeps_mode_and_owner_and_leaves_nothing_aside(self, here: Path) -> None:
        file = write(here / "loose.tide", LOOSE)
        file.chmod(0o640)
        if os.geteuid() == 0:
            os.chown(file, 4711, 4712)
        before = file.stat()
        assert fmt("loose.tide").exit_code == 0
        after = file.stat()
        assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
        assert [each.name for each in here.iterdir()] == ["loose.tide"]

    def test_rewrites_what_a_link_leads_to(self, here: Path) -> None:
        target = write(here / "real" / "policy.tide", LOOSE)
        link = here / "link.tide"
        link.symlink_to("real/policy.tide")
        assert fmt("link.tide").stdout == "link.tide\n"
        assert link.is_symlink()
        assert target.read_text() == TIDY
        assert [each.name for each in target.parent.iterdir()] == ["policy.tide"]

    def test_of_a_directory_takes_every_policy_below(self, here: Path) -> None:
        for name in ("a.tide", "deep/er/b.tide", "c.txt"):
            write(here / "all" / name, LOOSE)
        assert fmt("all").stdout == "all/a.tide\nall/deep/er/b.tide\n"
        assert (here / "all" / "c.txt").read_bytes().decode() == LOOSE

    def test_does_not_ask_whether_names_are_known(self, here: Path) -> None:
        write(here / "a.tide", "apply a{\nto nobody\nin nowhere\n}")
        assert fmt("a.tide").exit_code == 0
        assert (here / "a.tide").read_text() == "apply a {\n  to       nobody\n  in       nowhere\n}\n"


class TestRefusal:
    def test_of_one_file_does_not_stop_the_others(self, here: Path) -> None:
        write(here / "a.tide", BROKEN)
        write(here / "b.tide", LOOSE)
        (here / "c.tide").write_bytes(b"\xff")
        result = fmt("a.tide", "missing.tide", "c.tide", "b.tide")
        assert (result.exit_code, result.stdout) == (2, "b.tide\n")
        assert "error[P103]" in result.stderr
        assert "a.tide:2:7" in result.stderr
        assert "can not read missing.tide: no such file" in result.stderr
        assert "c.tide:1: the file is not UTF-8" in result.stderr
        assert (here / "a.tide").read_text() == BROKEN
        assert (here / "b.tide").read_text() == TIDY

    def test_of_standard_input_prints_nothing_that_could_be_taken_for_a_policy(self) -> None:
        result = fmt("-", "--stdin-filename", "edge.tide", given=BROKEN)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "edge.tide:2:7" in result.stderr

    def test_outweighs_a_change_that_check_finds(self, here: Path) -> None:
        write(here / "a.tide", BROKEN)
        write(here / "b.tide", LOOSE)
        result = fmt("--check", "a.tide", "b.tide")
        assert (result.exit_code, result.stdout) == (2, "b.tide\n")

    def test_of_what_is_no_file_loses_nothing(self) -> None:
        read_end, write_end = os.pipe()
        with os.fdopen(write_end, "w") as file:
            file.write(LOOSE)
        result = fmt(f"/dev/fd/{read_end}")
        os.close(read_end)
        assert result.exit_code == 2
        assert "is no regular file" in result.stderr

    def test_of_a_read_only_file_loses_nothing(self, here: Path) -> None:
        write(here / "a.tide", LOOSE).chmod(0o444)
        as_anybody = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
        command = [*as_anybody, str(Path(sys.executable).with_name("tidegate")), "fmt", "a.tide"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert "read-only" in done.stderr
        assert (here / "a.tide").read_bytes().decode() == LOOSE

    @pytest.mark.parametrize(
        "arguments", [[], ["-", "a.tide"], ["-", "-"], ["-", "--json"], ["--wrong", "a.tide"]]
    )
    def test_of_wrong_usage(self, here: Path, arguments: list[str]) -> None:
        write(here / "a.tide", LOOSE)
        result = fmt(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert (here / "a.tide").read_bytes().decode() == LOOSE


class TestStandardInput:
    def test_comes_out_formatted_byte_by_byte(self) -> None:
        given = "\ufeff# \u00e9 \u2028 \u6ce2\r\nedition  2026.1".encode()
        command = [str(Path(sys.executable).parent / "tidegate"), "fmt", "-"]
        result = subprocess.run(command, input=given, capture_output=True, check=True, env={"LC_ALL": "C"})
        assert result.stdout == "# \u00e9 \u2028 \u6ce2\nedition 2026.1\n".encode()

    def test_is_only_judged_with_check(self) -> None:
        loose = fmt("--check", "-", given=LOOSE)
        assert (loose.exit_code, loose.stdout) == (1, "<stdin>\n")
        tidy = fmt("--check", "-", given=TIDY)
        assert (tidy.exit_code, tidy.stdout) == (0, "")


class TestCheckAndDiff:
    def test_check_names_what_would_change_and_changes_nothing(self, here: Path) -> None:
        write(here / "loose.tide", LOOSE)
        write(here / "tidy.tide", TIDY)
        result = fmt("--check", ".")
        assert (result.exit_code, result.stdout) == (1, "loose.tide\n")
        assert (here / "loose.tide").read_bytes().decode() == LOOSE
        assert fmt("--check", "tidy.tide").exit_code == 0

    @pytest.mark.parametrize(
        "text", [LOOSE, f"{LOOSE}\n", "\n\n", "# a\x0cb\u2028c\n edition 2026.1", f"\ufeff{TIDY}"]
    )
    def test_diff_is_a_patch_that_gives_what_fmt_writes(self, here: Path, text: str) -> None:
        file = write(here / "a.tide", text)
        result = fmt("--diff", "a.tide")
        assert result.exit_code == 0
        assert file.read_bytes().decode() == text
        write(here / "a.patch", result.stdout_bytes.decode())
        apply = ["git", "apply", "-p0", "--whitespace=nowarn", "a.patch"]
        subprocess.run(apply, check=True, env=os.environ | {"GIT_CEILING_DIRECTORIES": str(here.parent)})
        patched = file.read_bytes()
        write(file, text)
        assert fmt("a.tide").exit_code == 0
        assert file.read_bytes() == patched

    def test_diff_with_check_answers_too(self, here: Path) -> None:
        write(here / "a.tide", LOOSE)
        result = fmt("--diff", "--check", "a.tide")
        assert result.exit_code == 1
        assert result.stdout.startswith("--- a.tide\n+++ a.tide\n@@ ")
        assert (here / "a.tide").read_bytes().decode() == LOOSE

    def test_diff_of_nothing_is_nothing(self, here: Path) -> None:
        write(here / "a.tide", TIDY)
        assert fmt("--diff", "a.tide").stdout == ""

    def test_diff_is_coloured_on_a_terminal_and_can_not_steer_it(self, here: Path) -> None:
        write(here / "a.tide", "edition  2026.1 # \x1b[2Jgone\r\n")
        shown = on_a_terminal("fmt", "--diff", "a.tide")
        assert "\x1b[31m-edition  2026.1 # \ufffd[2Jgone\ufffd\x1b[0m" in shown
        assert "\x1b[32m+edition 2026.1  # \ufffd[2Jgone\x1b[0m" in shown
        assert "\x1b[2J" not in on_a_terminal("fmt", "--diff", "a.tide", NO_COLOR="1")
        assert "\x1b[3" not in on_a_terminal("fmt", "--diff", "a.tide", NO_COLOR="1")


class TestJson:
    def test_tells_of_every_file(self, here: Path) -> None:
        for name, text in (("a.tide", LOOSE), ("b.tide", TIDY), ("c.tide", BROKEN)):
            write(here / name, text)
        result = fmt("--json", "--diff", "a.tide", "b.tide", "c.tide", "missing.tide")
        assert (result.exit_code, result.stderr) == (2, "")
        document = json.loads(result.stdout)
        assert document["ok"] is False
        loose, tidy, broken, missing = document["files"]
        assert (loose["path"], loose["changed"], loose["error"]) == ("a.tide", True, None)
        assert loose["diff"] == fmt("--diff", "a.tide").stdout_bytes.decode()
        assert tidy == {"path": "b.tide", "changed": False, "error": None, "diagnostics": [], "diff": ""}
        assert (broken["changed"], [found["code"] for found in broken["diagnostics"]]) == (False, ["P103"])
        assert "missing.tide" in missing["error"]

    @pytest.mark.parametrize(("text", "code"), [(LOOSE, 1), (TIDY, 0)])
    def test_agrees_with_the_exit_code(self, here: Path, text: str, code: int) -> None:
        write(here / "a.tide", text)
        result = fmt("--json", "--check", "a.tide")
        assert result.exit_code == code
        assert json.loads(result.stdout)["ok"] is (code == 0)


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What the command prints where standard output is a terminal."""
    ours, theirs = pty.openpty()
    command = [str(Path(sys.executable).parent / "tidegate"), *arguments]
    clean = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    running = subprocess.Popen(command, stdout=theirs, env=clean | environment)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # Linux's end of file of a terminal
        pass
    os.close(ours)
    assert running.wait() == 0
    return shown.decode()
