"""What Open Policy Agent says, and the files that follow from it."""

from collections.abc import Iterable

from rich.console import Console

from tidegate.emit import Written
from tidegate.guard import Verdict
from tidegate.show.lines import line


def verdict(console: Console, found: Verdict) -> None:
    """OPA's answer, and each denial."""
    if found.allow:
        line(console, "green", "Open Policy Agent allows it.")
        return
    line(console, "red", f"Open Policy Agent denies it ({len(found.denials)}):")
    for denial in found.denials:
        place = " ".join(part for part in (denial.pop, denial.prefix) if part)
        line(console, "", f"  {denial.code}: {place + ': ' if place else ''}{denial.message}")


def files(console: Console, written: Iterable[Written]) -> None:
    """The variables' files."""
    for file in written:
        line(console, "", f"  {file.action:<9} {file.path}")
