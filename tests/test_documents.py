"""What the documents say is there: links, make targets, commands and their options."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = Path(sys.executable).parent
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "*/README.md", "roles/*/README.md", "dsl/*.md")
    for path in ROOT.glob(pattern)
    if not path.is_relative_to(ROOT / "build")
)
PROGRAMS = ("tidegate", "tidegate-agent", "tidegate-collector")


def commands(path):
    """Every command line of ours in a document: in code blocks and in inline code."""
    text = path.read_text().replace("\\\n", " ")
    blocks = "\n".join(re.findall(r"```(?:sh|bash)?\n(.*?)```", text, re.DOTALL)).splitlines()
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    for line in [*blocks, *inline]:
        words = (
            shlex.split(line, comments=True) if line.count("'") % 2 == 0 and line.count('"') % 2 == 0 else []
        )
        if len(words) > 1 and words[0] in PROGRAMS and re.fullmatch(r"[a-z]+(\|[a-z]+)*", words[1]):
            yield words


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text()):
        assert target.startswith("http") or (path.parent / target).exists(), target


def test_make_targets_of_the_readme_exist():
    named = set(re.findall(r"make ([a-z]+)", (ROOT / "README.md").read_text()))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"demo", "test", "help"} <= named <= targets


def test_commands_and_options_of_the_documents_exist():
    used = {}
    for path in DOCUMENTS:
        for program, subcommands, *words in commands(path):
            for subcommand in subcommands.split("|"):
                options = {word.split("=")[0] for word in words if word.startswith("--")}
                used.setdefault((program, subcommand), set()).update(options)
    assert {program for program, _ in used} == set(PROGRAMS)
    for (program, subcommand), options in used.items():
        done = subprocess.run(
            [SCRIPTS / program, subcommand, "--help"], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, (program, subcommand)
        for option in options:
            assert option in done.stdout, (program, subcommand, option)
