"""The language of Tidegate's policies: text in, a checked `model.Policy` or diagnostics out.

Start with `check_file`; `render` and `summary` say what it found, `read_fleet` and `read_limits` read what a policy
is checked against, `judge` is the mathematics of `require`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .check import check_policy
from .diagnostics import Diagnostic, Findings
from .errors import InputError, unreadable
from .fixes import apply_fixes
from .inventory import read_fleet
from .limits import Limits, read_limits
from .membership import judge
from .memory import Memory
from .model import Fleet, Policy
from .parse import parse_policy
from .printed import render as _render
from .printed import summary
from .source import Source, read_text

__all__ = [
    "CheckResult",
    "Diagnostic",
    "InputError",
    "Limits",
    "Memory",
    "apply_fixes",
    "check_file",
    "check_text",
    "judge",
    "read_fleet",
    "read_limits",
    "read_text",
    "render",
    "summary",
]


@dataclass(frozen=True)
class CheckResult:
    """What checking one file gave.

    Attributes:
        source: its text.
        policy: None exactly when a diagnostic is an error.
        diagnostics: in the order of the file.
        silenced: warnings that an `# allow` in the file silences.
    """

    source: Source
    policy: Policy | None
    diagnostics: tuple[Diagnostic, ...]
    silenced: tuple[Diagnostic, ...] = ()


def render(result: CheckResult, *, color: bool = False) -> str:
    """The diagnostics as text, each with its source line; empty when there are none."""
    return _render(result.source, result.diagnostics, color=color)


def check_text(
    text: str,
    path: str,
    *,
    limits: Limits,
    inventory: Path | None = None,
    directory: Path | None = None,
    fleets: Callable[[Path], Fleet] = read_fleet,
    memory: Memory | None = None,
) -> CheckResult:
    """Check a policy's text; whatever the text, its mistakes come as diagnostics, in the order of the file.

    Args:
        text: the policy.
        path: what messages call it.
        limits: what a policy may not pass, from `read_limits`.
        inventory: directory or file to read instead of the inventory that the policy names.
        directory: what the policy's inventory is relative to; the directory of `path` if not given.
        fleets: reads an inventory; one who checks again and again gives a reader that remembers (`Reread`).
        memory: what the check of this path's last text left; the result is the same without it, and comes later.

    Raises:
        InputError: `inventory` can not be read.
    """
    source, findings = Source(path, text), Findings(path)
    memory = memory or Memory()
    tree = parse_policy(source, findings, memory.read(text))
    beside = Path(path).parent if directory is None else directory
    policy = check_policy(
        tree,
        source,
        directory=beside,
        inventory=inventory,
        limits=limits,
        findings=findings,
        fleets=fleets,
        memory=memory,
    )
    in_order = sorted(findings.items, key=lambda found: (found.span.start, found.code))
    return CheckResult(source, policy, tuple(in_order), tuple(findings.silenced))


def check_file(path: Path, *, limits: Path, inventory: Path | None = None) -> CheckResult:
    """Check a policy file.

    Args:
        path: the policy; messages name it as given here.
        limits: the limits file; messages name it as given here.
        inventory: directory or file to read instead of the inventory that the policy names.

    Raises:
        InputError: the policy is no readable UTF-8 text, or the limits or `inventory` can not be read.
    """
    try:
        with path.open("rb") as file:
            text = read_text(file, str(path))
    except OSError as error:
        raise unreadable(path, error) from error
    return check_text(text, str(path), limits=read_limits(limits), inventory=inventory)
