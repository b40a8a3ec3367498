"""What a select found of one prefix: its windows, and each clause with what was found."""

import ipaddress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from tidegate_dsl.model import Policy, Select

from tidegate.errors import Failure
from tidegate.judged import Judged, judged, misses
from tidegate.metrics import watched
from tidegate.select import measure, window_values
from tidegate.windows import lookback

if TYPE_CHECKING:  # the packages of a store are an extra
    from clickhouse_connect.driver.client import Client


@dataclass(frozen=True, slots=True)
class Window:
    """One closed window of one prefix; `value` and `threshold` in the measured metric's base unit."""

    start: datetime
    samples: int
    value: int
    threshold: int
    member: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """One select's view of one prefix in one POP.

    Attributes:
        select: whose view.
        pop: where.
        prefix: of whom.
        selected: it was selected before, so that the `leave` bounds counted.
        windows: those in which it was observed, oldest first.
        start: of the oldest window of the lookback.
        timeline: one character a window of the lookback, oldest first.
        clauses: every clause that decides, in the order of selection.
        reasons: everything that it misses; nothing: it qualifies.
    """

    select: Select
    pop: str
    prefix: str
    selected: bool
    windows: tuple[Window, ...]
    start: datetime
    timeline: str
    clauses: tuple[Judged, ...]
    reasons: tuple[str, ...]

    @property
    def qualifies(self) -> bool:
        """Whether the select wants it."""
        return not self.reasons


def explain(
    client: "Client", policy: Policy, select: Select, mark: datetime, pop: str, prefix: str, *, selected: bool
) -> Explanation:
    """Measure a prefix as selection does and judge it clause by clause.

    Args:
        client: of the store that the plan was made from.
        policy: the plan's.
        select: one of the policy's.
        mark: the plan's watermark; windows up to it must be closed.
        pop: where.
        prefix: of the length that the select measures by.
        selected: it was selected before the plan was made.
    """
    extra = watched(policy, select)
    found = next(iter(measure(client, select, mark, [(pop, prefix)], extra)), None)
    timeline = found.timeline if found else "." * select.windows
    values = window_values(client, select, mark, pop, prefix, extra)
    return Explanation(
        select=select,
        pop=pop,
        prefix=prefix,
        selected=selected,
        windows=tuple(Window(*each) for each in values),
        start=lookback(select, mark)[0],
        timeline=timeline,
        clauses=judged(select, timeline, found, selected=selected),
        reasons=tuple(misses(select, timeline, found, selected=selected)),
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
