"""A policy's text, or its file, to what checking it gave."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tidegate_dsl.diagnostics import Diagnostic, Findings, Source, read_text, unreadable
from tidegate_dsl.diagnostics import render as render_diagnostics
from tidegate_dsl.fleet import Limits, read_fleet, read_limits
from tidegate_dsl.model import Fleet, Policy
from tidegate_dsl.syntax import Memory, parse_policy

from .policy import check_policy


@dataclass(frozen=True)
class CheckResult:
    """What checking one file gave.

    Attributes:
        source: its text.
        policy: None exactly when a diagnostic is an error.
        tested: the policy also where its only errors are tests that fail.
        diagnostics: in the order of the file.
        silenced: warnings that an `# allow` in the file silences.
    """

    source: Source
    policy: Policy | None
    tested: Policy | None
    diagnostics: tuple[Diagnostic, ...]
    silenced: tuple[Diagnostic, ...] = ()


def render(result: CheckResult, *, color: bool = False) -> str:
    """The diagnostics as text, each with its source line; empty when there are none."""
    return render_diagnostics(result.source, result.diagnostics, color=color)


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
    tree = parse_policy(source, findings, memory)
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
    failed = any(found.severity == "error" for found in in_order)
    return CheckResult(source, None if failed else policy, policy, tuple(in_order), tuple(findings.silenced))


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
