"""What one run decides, as records; each says the clause that decided, and all have one order."""

import ipaddress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from tidegate_dsl.model import Clause

from tidegate.select import Measurement

Action = Literal["added", "kept", "held"]
Arm = Literal["treated", "held_out"]
GuardStatus = Literal["ok", "too_few", "frozen", "released"]
Key = tuple[str, str]  # (POP, prefix)


@dataclass(frozen=True, slots=True)
class Decision:
    """One selected prefix of one POP.

    `arm_since` is the watermark since which it is in this arm of this rule: later than `admitted_at` where another
    rule had it first, or where a change of `hold_out` moved it.
    """

    pop: str
    prefix: str
    rule: str
    select: str
    action: Action
    arm: Arm
    because: str
    admitted_at: datetime
    arm_since: datetime
    qualified_at: datetime
    metrics: Measurement | None


@dataclass(frozen=True, slots=True)
class Released:
    """A prefix that was selected in the previous generation and is not any more.

    `withdrawn`: its rule's schedule ended or its guard aborted, so that its loss says nothing of telemetry.
    """

    pop: str
    prefix: str
    rule: str
    arm: Arm
    because: str
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class Deferred:
    """A prefix that qualifies and is left out for now, by a limit or a guard."""

    pop: str
    prefix: str
    rule: str
    because: str


@dataclass(frozen=True, slots=True)
class GuardState:
    """What a policy's guard says of its rule in one POP.

    Attributes:
        pop: where.
        guard: the guard's name.
        rule: the rule that it watches.
        status: `ok`; `too_few` prefixes to judge an abort by; `frozen`: the rule keeps what it has;
            `released`: it has nothing, and admits none until the guard's time is over.
        because: the clause, with the figures that were compared.
        since: the watermark at which the guard came to this status; of `released` that of the abort.
    """

    pop: str
    guard: str
    rule: str
    status: GuardStatus
    because: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Evidence:
    """What telemetry says of one select: who qualifies, and the measurements of those selected before."""

    qualifying: tuple[Measurement, ...]
    previous: tuple[Measurement, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """All decisions of one run, sorted by POP and prefix; guards by POP and name."""

    decisions: tuple[Decision, ...]
    released: tuple[Released, ...]
    deferred: tuple[Deferred, ...]
    guards: tuple[GuardState, ...] = ()


def cite(clause: Clause) -> str:
    """A clause as a reason: its words and its line."""
    return f"{clause.text} (line {clause.line})"


def place(item: Decision | Released | Deferred) -> tuple[str, tuple[int, int, int]]:
    """The order of decisions: POP, then prefix."""
    return item.pop, prefix_order(item.prefix)


def prefix_order(prefix: str) -> tuple[int, int, int]:
    """Family, address, length."""
    network = ipaddress.ip_network(prefix)
    return network.version, int(network.network_address), network.prefixlen
