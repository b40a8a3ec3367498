"""Whether BBR with raised pacing is worth having: the figures of its experiment by condition, and the rule. Pure."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tidegate_lab.algorithms import RAISE, RAISE_BOUND, WRAPPED
from tidegate_lab.experiments.claim import Claim
from tidegate_lab.experiments.on_time import punctual
from tidegate_lab.experiments.struct_ops import CONDITIONS, CONTENDED, FREE, Condition, Outcome

CANDIDATES: Final = (RAISE, RAISE_BOUND)
_HALF_AND_WORSE: Final = tuple(each for each in CONTENDED if each.off_ms >= each.on_ms)


@dataclass(frozen=True, slots=True)
class Figures:
    """One algorithm under one condition, over all seeds; a pair is the least and the most.

    Attributes:
        condition: which.
        algorithm: which.
        mbit_s: median goodput.
        mbit_s_between: of the seeds.
        p50_s: of the objects' completion times.
        p5_s: the same; by the inclusive method.
        p95_s: the same.
        retransmitted: median share of segments.
        share: median bytes in flight over bandwidth x min_rtt; None: not estimated.
        raised: share of acknowledgements upon which pacing was raised.
    """

    condition: Condition
    algorithm: str
    mbit_s: float
    mbit_s_between: tuple[float, float]
    p5_s: float
    p50_s: float
    p95_s: float
    retransmitted: float
    share: float | None
    raised: float


@dataclass(frozen=True, slots=True)
class _Compared:
    """One condition: the kernel's BBR, the same through struct_ops, and with its pacing raised."""

    plain: Figures
    wrapped: Figures
    raising: Figures


def figures(outcomes: Sequence[Outcome]) -> list[Figures]:
    """By condition and algorithm, in the order of the outcomes' first."""
    groups: dict[tuple[Condition, str], list[Outcome]] = {}
    for each in sorted(outcomes, key=lambda each: (CONDITIONS.index(each.condition), each.algorithm)):
        groups.setdefault((each.condition, each.algorithm), []).append(each)
    return [_figures(condition, algorithm, group) for (condition, algorithm), group in groups.items()]


def _figures(condition: Condition, algorithm: str, group: Sequence[Outcome]) -> Figures:
    rates = [each.mbit_s for each in group]
    seconds = [second for each in group for second in each.seconds]
    parts = statistics.quantiles(seconds, n=20, method="inclusive")
    shares = [share for each in group for share in each.told.shares]
    acks = sum(each.told.acks for each in group)
    return Figures(
        condition,
        algorithm,
        statistics.median(rates),
        (min(rates), max(rates)),
        parts[0],
        statistics.median(seconds),
        parts[-1],
        statistics.median(each.told.retransmitted / max(each.told.segments, 1) for each in group),
        statistics.median(shares) if shares else None,
        sum(each.told.raised for each in group) / max(acks, 1),
    )


def claims(outcomes: Sequence[Outcome]) -> list[Claim]:
    """First that the laboratory can be believed, then the rule for both forms of raising: shipped, or not.

    Wrapped BBR is the kernel's, so that what lies between the two is noise: a gain must beat both, and what is within
    a twentieth of the worse one is no harm.
    """
    found = {(each.condition, each.algorithm): each for each in figures(outcomes)}
    free = [(found[each, "bbr"].mbit_s, found[each, WRAPPED].mbit_s) for each in FREE]
    contended = [(found[each, "bbr"].mbit_s, found[each, WRAPPED].mbit_s) for each in CONTENDED]
    return [
        Claim(
            "packets were delivered less than 1 ms late on average",
            punctual(each.link for each in outcomes),
        ),
        Claim("the sender's CPU stood as long as asked, within a fifth", all(map(_stood_as_asked, outcomes))),
        Claim(
            "where the CPU is free, wrapped BBR has the kernel's goodput within a twentieth",
            all(0.95 < wrapped / plain < 1.05 for plain, wrapped in free),
        ),
        Claim(
            "where it is not, within a third, by the geometric mean over all conditions",
            0.75 < statistics.geometric_mean(wrapped / plain for plain, wrapped in contended) < 1.33,
        ),
        *(claim for name in CANDIDATES for claim in _rule(name, found)),
    ]


def _rule(name: str, found: Mapping[tuple[Condition, str], Figures]) -> list[Claim]:
    rows = {each: _Compared(*(found[each, of] for of in ("bbr", WRAPPED, name))) for each in CONDITIONS}
    free = [rows[each] for each in FREE]
    starved = [rows[each] for each in _HALF_AND_WORSE]
    return [
        Claim(
            f"{name}, gain: where the CPU stands half of the time or more, 1.3 times the goodput of both",
            all(each.raising.mbit_s > 1.3 * max(each.plain.mbit_s, each.wrapped.mbit_s) for each in starved),
        ),
        Claim(f"{name}, gain: and 1 MB is there no later, by median", all(map(_is_as_soon, starved))),
        Claim(
            f"{name}, no harm: where the CPU is free, the same goodput and completion times",
            all(
                each.raising.mbit_s > 0.95 * min(each.plain.mbit_s, each.wrapped.mbit_s) and _is_as_soon(each)
                for each in free
            ),
        ),
        Claim(
            f"{name}, no harm: one segment in a hundred more is sent again at most; without the CPU, in thirty",
            all(_more_is_lost(rows[each]) < (0.01 if each in FREE else 1 / 30) for each in CONDITIONS),
        ),
    ]


def _is_as_soon(each: _Compared) -> bool:
    return each.raising.p50_s < 1.05 * max(each.plain.p50_s, each.wrapped.p50_s)


def _more_is_lost(each: _Compared) -> float:
    return each.raising.retransmitted - max(each.plain.retransmitted, each.wrapped.retransmitted)


def _stood_as_asked(outcome: Outcome) -> bool:
    condition = outcome.condition
    if not condition.off_ms:
        return outcome.stood == 0
    asked = condition.off_ms / (condition.on_ms + condition.off_ms)
    return 0.8 < outcome.stood / asked < 1.2
