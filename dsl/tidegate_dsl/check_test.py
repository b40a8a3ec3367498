"""A `test` block: read, and run."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final, Literal

from . import syntax
from .membership import MEMBER, NOT_MEMBER, UNOBSERVED, figures, missed
from .model import MembershipTest, Select
from .quantities import spell
from .scope import Scope
from .structure import find

_REPEAT: Final = "..."
_VERDICTS: Final[dict[str, Literal["includes", "excludes"]]] = {
    "includes": "includes",
    "excludes": "excludes",
}

Network = IPv4Network | IPv6Network


def check_test(block: syntax.Block, scope: Scope) -> MembershipTest | None:
    """The test, which passes; None where a part of it is missing or reported, or where it fails."""
    given, expect = find(block.body.clauses, syntax.Given), find(block.body.clauses, syntax.Expect)
    prefix = _prefix(given.prefix, scope) if given else None
    pop = scope.pop(given.pop) if given else None
    select = scope.select(expect.select) if expect else None
    expected = _prefix(expect.prefix, scope) if expect else None
    if given is None or expect is None or prefix is None or expected is None or select is None:
        return None
    if not _agree(prefix, expected, expect, select, scope):
        return None
    membership = _membership(given.membership, select, scope)
    if membership is None or pop is None:
        return None
    test = MembershipTest(
        name=block.name.text,
        clause=scope.clause(block.span),
        prefix=str(prefix),
        pop=pop,
        membership=membership,
        select=select.name,
        expect=_VERDICTS[expect.verdict.text],
        because=expect.because.text if expect.because else None,
    )
    return test if _passes(test, select, expect, scope) else None


def _agree(prefix: Network, expected: Network, expect: syntax.Expect, select: Select, scope: Scope) -> bool:
    """Whether what is expected can be said of what is given; otherwise it is reported."""
    length = select.prefix_length_ipv4 if prefix.version == 4 else select.prefix_length_ipv6
    if expect.because and expect.verdict.text == "includes":
        way_out = "remove `because`, or write `excludes`"
        scope.findings.error("C111", "an inclusion has no reason", expect.because.span, help=way_out)
    elif prefix != expected:
        way_out = f"expect something of `{prefix}`"
        scope.findings.error("C110", f"nothing is given about `{expected}`", expect.prefix.span, help=way_out)
    elif prefix.prefixlen != length:
        scope.findings.error(
            "C109",
            f"`{select.name}` measures IPv{prefix.version} by /{length}, never `{prefix}`",
            expect.prefix.span,
            help=f"give and expect a /{length}",
        )
    else:
        return True
    return False


def _prefix(name: syntax.Name, scope: Scope) -> Network | None:
    try:
        network = ip_network(name.text, strict=False)
    except ValueError:
        scope.findings.error(
            "T107", f"`{name.text}` is no network prefix", name.span, help="write one such as `192.0.2.0/24`"
        )
        return None
    if "/" not in name.text:
        scope.findings.error(
            "T107", f"`{name.text}` has no prefix length", name.span, help="write one such as `192.0.2.0/24`"
        )
        return None
    if int(network.network_address) != int(ip_network(name.text.partition("/")[0]).network_address):
        scope.findings.error("T107", f"`{name.text}` has host bits", name.span, help=f"write `{network}`")
        return None
    return network


def _membership(string: syntax.Name, select: Select, scope: Scope) -> str | None:
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
            help=f"give {select.windows} windows, or end a shorter pattern with `...`",
        )
        return None
    return (pattern * (select.windows // len(pattern) + 1))[: select.windows] if repeated else pattern


def _passes(test: MembershipTest, select: Select, expect: syntax.Expect, scope: Scope) -> bool:
    misses = missed(select, test.membership)
    verdict = "excludes" if misses else "includes"
    if verdict == test.expect and (test.because is None or test.because in misses):
        return True
    found = f"`{select.name}` {verdict} {test.prefix}" + (
        f" because of {' and '.join(misses)}" if misses else ""
    )
    wanted = f", not because of {test.because}" if verdict == test.expect else ""
    scope.findings.error(
        "X101",
        f"the test fails: {found}{wanted}",
        expect.span,
        notes=_figures(test.membership, select),
    )
    return False


def _figures(membership: str, select: Select) -> tuple[str, ...]:
    """What each requirement looks at, with its bound."""
    seen = figures(membership)
    rows = (
        (f"windows: {seen.observed} of {seen.lookback} observed", select.min_windows, ">="),
        (f"duty_cycle: member in {seen.member} of {seen.lookback} windows", select.min_duty_cycle, ">="),
        (f"flap_rate: {seen.flips} flips in {seen.pairs} pairs of windows", select.max_flap_rate, "<="),
    )
    return tuple(
        f"{said}; required {comparison} {bound.value if said.startswith('windows') else spell(bound.value, 'ratio')}"
        f" (line {bound.clause.line})"
        if bound
        else said
        for said, bound, comparison in rows
    )
