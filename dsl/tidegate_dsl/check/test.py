"""A `test` block: read, and run where a membership string is given; recordings are for `tidegate test`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from tidegate_dsl.diagnostics import Edit, Fix, advice, spelling
from tidegate_dsl.model import (
    MEMBER,
    NOT_MEMBER,
    UNOBSERVED,
    Bound,
    Expectation,
    Membership,
    PolicyTest,
    Recording,
    Select,
    figures,
    missed,
)
from tidegate_dsl.syntax import find, tree
from tidegate_dsl.values import Network, check_prefix, check_time
from tidegate_dsl.vocabulary import LEAVE, REASONS, REQUIREMENTS, spell

from .scope import Scope

TEST_FAILS: Final = "X101"
_REPEAT: Final = "..."
_VERDICTS: Final[dict[str, Literal["includes", "excludes"]]] = {
    "includes": "includes",
    "excludes": "excludes",
}


def check_test(directory: Path, block: tree.Block, scope: Scope) -> PolicyTest | None:
    """The test, also one that is run here and fails; None where a part is missing or reported otherwise.

    Args:
        directory: what a recording's path is relative to.
        block: the block.
        scope: what names mean.
    """
    clauses = block.body.clauses
    expects = [clause for clause in clauses if isinstance(clause, tree.Expect)]
    given: Membership | Recording | None = None
    if clause := find(clauses, tree.Given):
        return _of_membership(block, clause, expects, scope)
    recorded = find(clauses, tree.GivenTelemetry)
    if recorded is None:  # reported: what would be expected of it is not known
        return None
    until = check_time(recorded.until, scope.findings) if recorded.until else None
    if until is not None or recorded.until is None:
        given = Recording(str(directory / recorded.path.text), until)
    made = [_of_recording(expect, scope) for expect in expects]
    return _whole(block, given, made, scope)


def _whole(
    block: tree.Block,
    given: Membership | Recording | None,
    made: list[Expectation | None],
    scope: Scope,
) -> PolicyTest | None:
    expect = tuple(each for each in made if each is not None)
    if given is None or not expect or len(expect) < len(made):
        return None
    return PolicyTest(block.name.text, scope.clause(block.span), given, expect)


def _of_recording(expect: tree.Expect, scope: Scope) -> Expectation | None:
    """An expectation about recorded telemetry; None where it is reported."""
    prefix, select = check_prefix(expect.prefix, scope.findings), scope.select(expect.select)
    pop = scope.pop(expect.pop) if expect.pop else None
    if expect.pop is None:
        scope.findings.error(
            "C110",
            "recorded telemetry is of many POPs, and none is named",
            expect.span,
            help=f"write `{expect.verdict.text} {expect.prefix.text} in POP`",
        )
        return None
    if prefix is None or select is None or pop is None or not _fits(prefix, expect, select, scope):
        return None
    excluded = dict.fromkeys(condition.metric for condition in select.exclude)
    return _expectation(expect, prefix, pop, select, (*REASONS, *excluded), None, scope)


def _of_membership(
    block: tree.Block, clause: tree.Given, expects: list[tree.Expect], scope: Scope
) -> PolicyTest | None:
    prefix, pop = check_prefix(clause.prefix, scope.findings), scope.pop(clause.pop)
    given: Membership | None = None
    made: list[Expectation | None] = []
    for expect in expects:
        select = scope.select(expect.select)
        expected = check_prefix(expect.prefix, scope.findings)
        made.append(None)
        if select is None or prefix is None or expected is None:
            continue
        if not _about(clause, prefix, expect, expected, scope) or not _fits(expected, expect, select, scope):
            continue
        windows = given.windows if given else _membership(clause.membership, select, scope)
        if windows is None or pop is None:
            return None
        given = given or Membership(str(prefix), pop, windows, clause.selected)
        if len(windows) != select.windows:
            scope.findings.error(
                "T108",
                f"{len(windows)} windows are given, the lookback of `{select.name}` holds {select.windows}",
                expect.select.span,
                help="write a test of its own for this select",
            )
            continue
        misses = missed(select, given.windows, selected=given.selected)
        expectation = _expectation(expect, prefix, pop, select, REASONS, misses, scope)
        if expectation:
            _report_failure(given, expectation, select, expect, misses, scope)
        made[-1] = expectation
    return _whole(block, given, made, scope)


def _expectation(
    expect: tree.Expect,
    prefix: Network,
    pop: str,
    select: Select,
    reasons: tuple[str, ...],
    misses: Sequence[str] | None,
    scope: Scope,
) -> Expectation | None:
    """The expectation; None where its reason is missing, has no place, or is none that the select can give.

    `misses` is what the given membership misses, None for recorded telemetry: a fix must let the test pass.
    """
    because = expect.because.text if expect.because else None
    if expect.verdict.text == "includes" and expect.because:
        way_out = "remove `because`, or write `excludes`"
        fix = None if misses else _without_reason(expect, expect.because)
        scope.findings.error("C111", "an inclusion has no reason", expect.because.span, help=way_out, fix=fix)
    elif expect.verdict.text == "excludes" and expect.because is None:
        scope.findings.error(
            "C123",
            "this exclusion names no reason, so that any mistake would pass it",
            expect.span,
            help=f"add `because` and one of {', '.join(f'`{reason}`' for reason in reasons)}",
            fix=_with_reason(expect, misses[0]) if misses and len(misses) == 1 else None,
        )
    elif expect.because and because not in reasons:
        scope.findings.error(
            "C124",
            f"`{select.name}` never excludes because of `{because}` here",
            expect.because.span,
            help=advice(expect.because.text, reasons, what="it can say"),
            fix=spelling(expect.because.span, expect.because.text, reasons if misses is None else misses),
        )
    else:
        at = scope.clause(expect.span)
        return Expectation(select.name, _VERDICTS[expect.verdict.text], str(prefix), pop, because, at)
    return None


def _without_reason(expect: tree.Expect, because: tree.Name) -> Fix:
    before = expect.pop or expect.prefix
    return Fix("remove the reason", (Edit(before.span.end.to(because.span), ""),))


def _with_reason(expect: tree.Expect, reason: str) -> Fix:
    return Fix(f"write `because {reason}`", (Edit(expect.span.end, f" because {reason}"),))


def _about(given: tree.Given, prefix: Network, expect: tree.Expect, expected: Network, scope: Scope) -> bool:
    """Whether an expectation is about the prefix and POP that are given; otherwise it is reported."""
    if prefix != expected:
        way_out = f"expect something of `{prefix}`"
        scope.findings.error("C110", f"nothing is given about `{expected}`", expect.prefix.span, help=way_out)
    elif expect.pop and expect.pop.text != given.pop.text:
        way_out = f"write `in {given.pop.text}`, or leave it out"
        message = f"nothing is given about `{expect.pop.text}`"
        scope.findings.error("C110", message, expect.pop.span, help=way_out)
    else:
        return True
    return False


def _fits(prefix: Network, expect: tree.Expect, select: Select, scope: Scope) -> bool:
    """Whether the select measures prefixes of this length; otherwise it is reported."""
    length = select.prefix_length_ipv4 if prefix.version == 4 else select.prefix_length_ipv6
    if prefix.prefixlen == length:
        return True
    scope.findings.error(
        "C109",
        f"`{select.name}` measures IPv{prefix.version} by /{length}, never `{prefix}`",
        expect.prefix.span,
        help=f"give and expect a /{length}",
    )
    return False


def _membership(string: tree.Name, select: Select, scope: Scope) -> str | None:
    """One character a window, a trailing `...` resolved; None where it is reported."""
    repeated = string.text.endswith(_REPEAT)
    pattern = string.text.removesuffix(_REPEAT)
    strange = sorted(set(pattern) - {MEMBER, NOT_MEMBER, UNOBSERVED})
    if strange or not pattern:
        what = (
            f"`{strange[0]}` has no meaning in a membership string"
            if strange
            else "this membership string is empty"
        )
        scope.findings.error(
            "T108",
            what,
            string.span,
            help="`1` member, `0` observed and no member, `.` not observed; a last `...` repeats",
        )
        return None
    if len(pattern) > select.windows or (not repeated and len(pattern) < select.windows):
        scope.findings.error(
            "T108",
            f"{len(pattern)} windows are given, the lookback of `{select.name}` holds {select.windows}",
            string.span,
            help="give as many, or end a shorter pattern with `...`",
        )
        return None
    return (pattern * (select.windows // len(pattern) + 1))[: select.windows] if repeated else pattern


def _report_failure(
    given: Membership,
    wanted: Expectation,
    select: Select,
    expect: tree.Expect,
    misses: Sequence[str],
    scope: Scope,
) -> None:
    """Report a test that does not find what it expects."""
    verdict = "excludes" if misses else "includes"
    if verdict == wanted.verdict and (wanted.because is None or wanted.because in misses):
        return
    found = f"`{select.name}` {verdict} {wanted.prefix}" + (
        f" because of {' and '.join(misses)}" if misses else ""
    )
    instead = f", not because of {wanted.because}" if verdict == wanted.verdict else ""
    scope.findings.error(
        TEST_FAILS, f"the test fails: {found}{instead}", expect.span, notes=_figures(given, select)
    )


def _figures(given: Membership, select: Select) -> tuple[str, ...]:
    """What each requirement looks at, with its bound."""
    seen = figures(given.windows)
    rows = (
        ("windows", f"{seen.observed} of {seen.lookback} observed", select.min_windows),
        ("duty_cycle", f"member in {seen.member} of {seen.lookback} windows", select.min_duty_cycle),
        ("flap_rate", f"{seen.flips} flips in {seen.pairs} pairs of windows", select.max_flap_rate),
    )
    return tuple(f"{subject}: {said}{_demand(subject, bound, given)}" for subject, said, bound in rows)


def _demand(subject: str, bound: Bound | None, given: Membership) -> str:
    if bound is None:
        return ""
    leaves = given.selected and bound.leave is not None
    value = bound.leave if given.selected and bound.leave is not None else bound.value
    shown = str(value) if subject == "windows" else spell(value, "ratio")
    said = f"leaves {LEAVE[subject]}" if leaves else f"required {REQUIREMENTS[subject]}"
    return f"; {said} {shown} (line {bound.clause.line})"
