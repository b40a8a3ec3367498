"""Policies fixed: every fix that can be made, checked again behind each round."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidegate_dsl import CheckResult, Diagnostic, apply_fixes
from tidegate_dsl.fixes import applicable

from tidegate.files import write_atomically
from tidegate.sources import Written

_MOST_ROUNDS: Final = 10  # a fix can bring a mistake to light that it hid; none takes that many


@dataclass(frozen=True, slots=True)
class Fixed:
    """A policy behind its fixes.

    Attributes:
        before: as it was.
        result: what a check says of it now.
        made: the mistakes that were fixed, in rounds, in the order of the file; places are those of their round.
    """

    before: Written
    result: CheckResult
    made: tuple[Diagnostic, ...]

    @property
    def text(self) -> str:
        """As it is now."""
        return self.result.source.text


def fix(written: Written, check: Callable[[Written], CheckResult]) -> Fixed:
    """The policy with every fix made; nothing is written.

    Args:
        written: the policy.
        check: checks a text.
    """
    result = check(written)
    made: list[Diagnostic] = []
    for _ in range(_MOST_ROUNDS):
        chosen = applicable(result.diagnostics)
        if not chosen:
            break
        made += chosen
        text = apply_fixes(result.source.text, chosen)
        result = check(Written(written.name, text, written.directory, written.file))
    return Fixed(written, result, tuple(made))


def save(fixed: Fixed, file: Path) -> None:
    """Replace the file, or what a link leads to, by the fixed text; its mode stays.

    Raises:
        Failure: it cannot be written; what stood there stays.
    """
    target = file.resolve()
    mode = target.stat().st_mode & 0o7777
    write_atomically(target, fixed.text)
    target.chmod(mode)


def difference(fixed: Fixed) -> str:
    """What the fixes change, as a unified diff; empty when there are none."""
    name = fixed.before.name
    rows = difflib.unified_diff(
        fixed.before.text.splitlines(keepends=True),
        fixed.text.splitlines(keepends=True),
        f"{name} (as it is)",
        f"{name} (fixed)",
    )
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)
