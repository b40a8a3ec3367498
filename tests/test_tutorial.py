"""The tutorial, followed to the letter: its files are written, its commands run, its outputs compared.

A fence ```tide FILE writes the file, ```tide FILE + appends to it; in ```console, lines behind `$ ` are run and the
rest is what they print. TIDEGATE_UPDATE=1 writes what they print into the tutorial.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TUTORIAL = ROOT / "docs" / "tutorial.md"
START = "mkdir -p build/tutorial\ncp -r inventory build/tutorial/\ncd build/tutorial\n"
FENCE = re.compile(
    r"^```(?P<kind>\w+)(?: (?P<file>[\w./]+))?(?P<more> \+)?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)


def followed(text: str, directory: Path) -> str:
    """The tutorial with what its commands print in the place of what it says they print."""

    def fence(match: re.Match[str]) -> str:
        body: str = match["body"]
        if match["kind"] == "tide" and match["file"]:
            with (directory / match["file"]).open("a" if match["more"] else "w", encoding="utf-8") as file:
                file.write(body)
        elif match["kind"] == "console":
            lines = [line for line in body.splitlines() if line.startswith("$ ")]
            body = "".join(f"{line}\n{printed(line[2:], directory)}" for line in lines)
        return f"{match.group()[: match.group().index(chr(10)) + 1]}{body}```"

    return FENCE.sub(fence, text)


def printed(line: str, directory: Path) -> str:
    """What a command line prints, standard error included, without blanks at the ends of lines."""
    path = f"{Path(sys.executable).parent}:{ROOT / 'build/bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=directory,
        env=os.environ | {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    return "".join(f"{row.rstrip()}\n" for row in done.stdout.splitlines())


def test_the_tutorial_says_what_happens(tmp_path: Path) -> None:
    text = TUTORIAL.read_text(encoding="utf-8")
    assert f"```sh\n{START}```" in text  # the directory that the next line makes
    shutil.copytree(ROOT / "inventory", tmp_path / "inventory")
    right = followed(text, tmp_path)
    assert right.count("\n$ ") > 15
    if os.environ.get("TIDEGATE_UPDATE"):
        TUTORIAL.write_text(right, encoding="utf-8")
    assert text == right
