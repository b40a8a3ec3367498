"""Policies fixed: every fix that can be made, checked again behind each round."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tidegate_dsl import CheckResult, Diagnostic, apply_fixes
from tidegate_dsl.diagnostics import applicable

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
        chosen = applicable(result.source.text, result.diagnostics)
        if not chosen:
            break
        made += chosen
        text = apply_fixes(result.source.text, chosen)
        result = check(Written(written.name, text, written.directory, written.file))
    return Fixed(written, result, tuple(made))
