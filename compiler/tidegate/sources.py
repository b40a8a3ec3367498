"""Which policies a command is about: files, every `.tide` file of a directory, or standard input."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidegate_dsl import read_text
from tidegate_dsl.diagnostics import unreadable

from tidegate.errors import Failure

STDIN: Final = Path("-")


@dataclass(frozen=True, slots=True)
class Written:
    """A policy's text.

    Attributes:
        name: what messages call it.
        text: what it says.
        directory: what the paths in it are relative to.
        file: where it is kept; None for standard input.
    """

    name: str
    text: str
    directory: Path
    file: Path | None


def find_policies(paths: Iterable[Path]) -> list[Path]:
    """Each path, and of a directory every `.tide` file below it, sorted; none twice.

    Raises:
        Failure: a directory holds none.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path != STDIN and path.is_dir():
            below = sorted(path.rglob("*.tide"))
            if not below:
                raise Failure(f"{path} holds no policy", help="a policy's name ends in `.tide`")
            found.update(dict.fromkeys(below))
        else:
            found[path] = None
    return list(found)


def read_policy(path: Path, stdin_name: Path | None) -> Written:
    """The policy's text.

    Args:
        path: a file, or `-` for standard input.
        stdin_name: the file that standard input stands for: its name, and the directory it would be in.

    Raises:
        InputError: the file can not be read, or is no text that a policy can be.
    """
    if path == STDIN:
        name = stdin_name or Path("<stdin>")
        return Written(str(name), read_text(sys.stdin.buffer, str(name)), name.parent, None)
    try:
        with path.open("rb") as file:
            return Written(str(path), read_text(file, str(path)), path.parent, path)
    except OSError as error:
        raise unreadable(path, error) from error
