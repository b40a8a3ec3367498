"""Why a prefix is selected or not: its windows, and each clause with what was found."""

import ipaddress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidegate_dsl.model import Clause, Select

from tidegate.errors import Failure
from tidegate.metrics import PPM, RETRANSMIT_RATIO
from tidegate.select import Measurement, measure, meets, window_values

if TYPE_CHECKING:  # the packages of a store are an extra
    from clickhouse_connect.driver.client import Client

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Window:
    """One closed window of one prefix; `value` and `threshold` in the measured metric's base unit."""

    start: datetime
    samples: int
    value: int
    threshold: int
    member: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """One clause: whether the prefix passes it, and what was found, in words."""

    clause: Clause
    passed: bool
    found: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """One select's view of one prefix in one POP."""

    select: str
    pop: str
    prefix: str
    metric: str
    windows: tuple[Window, ...]
    timeline: str
    clauses: tuple[Judged, ...]
    qualifies: bool


def explain(client: "Client", select: Select, mark: datetime, pop: str, prefix: str) -> Explanation:
    """Measure a prefix as selection does and judge it clause by clause."""
    found = measure(client, select, mark, [(pop, prefix)])
    windows = tuple(Window(*values) for values in window_values(client, select, mark, pop, prefix))
    clauses = tuple(judged(select, found[0])) if found else ()
    return Explanation(
        select=select.name,
        pop=pop,
        prefix=prefix,
        metric=select.metric,
        windows=windows,
        timeline=found[0].timeline if found else "." * select.windows,
        clauses=clauses,
        qualifies=bool(found) and found[0].member != 0 and all(j.passed for j in clauses),
    )


def measured_prefix(select: Select, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> str:
    """The prefix by which a select measures an address or a network in it.

    Raises:
        Failure: the network is wider than what the select measures, so it holds many such prefixes.
    """
    length = select.prefix_length_ipv4 if network.version == 4 else select.prefix_length_ipv6
    if network.prefixlen < length:
        raise Failure(
            f"{select.name} measures by /{length}, and {network} is wider", help=f"name a /{length} in it"
        )
    return str(network.supernet(new_prefix=length))


def judged(select: Select, m: Measurement) -> list[Judged]:
    """Every clause that decides, in the order of selection; ratios compared as integers, printed rounded."""
    result = [Judged(select.rank.clause, m.member != 0, f"member in {m.member_windows} windows")]
    if bound := select.min_windows:
        result.append(Judged(bound.clause, m.windows >= bound.value, f"{m.windows} windows observed"))
    if bound := select.min_duty_cycle:
        passed = m.member_windows * PPM >= bound.value * m.lookback_windows
        result.append(
            Judged(
                bound.clause,
                passed,
                f"{_percent(m.member_windows, m.lookback_windows)}"
                f" ({m.member_windows} of {m.lookback_windows} windows)",
            )
        )
    if bound := select.max_flap_rate:
        passed = m.flips * PPM <= bound.value * m.adjacent_pairs
        result.append(
            Judged(
                bound.clause,
                passed,
                f"{_percent(m.flips, m.adjacent_pairs)} ({m.flips} changes in {m.adjacent_pairs} pairs)",
            )
        )
    for condition in select.exclude:
        found = say(condition.metric, m.metric(condition.metric))
        result.append(Judged(condition.clause, not meets(m, condition), found))
    return result


def say(metric: str, value: int | None) -> str:
    """A metric's value in words that people read; None is `not measured`."""
    if value is None:
        return f"{metric} was not measured"
    if metric == RETRANSMIT_RATIO:
        return f"{value / 10_000:.2f}%"
    if metric in {"min_rtt", "rtt"}:
        return f"{value / 1000:.1f} ms"
    if metric == "delivery_rate":
        return f"{value / 1_000_000:.2f} Mbps"
    return f"{value} segments"


def document(explanation: Explanation, decision: Document | None) -> Document:
    """The JSON form; `decision` is the plan's, where it has one."""
    return {
        "pop": explanation.pop,
        "prefix": explanation.prefix,
        "select": explanation.select,
        "metric": explanation.metric,
        "qualifies": explanation.qualifies,
        "timeline": explanation.timeline,
        "clauses": [
            {"clause": j.clause.text, "line": j.clause.line, "passed": j.passed, "found": j.found}
            for j in explanation.clauses
        ],
        "windows": [
            {
                "start": w.start.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "samples": w.samples,
                "value": w.value,
                "threshold": w.threshold,
                "member": w.member,
            }
            for w in explanation.windows
        ],
        "decision": decision,
    }


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "0.0%"
