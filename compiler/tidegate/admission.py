"""Who is let in, and who must make room: the limits of a rule. No I/O, no clock."""

from collections import Counter

from tidegate.decisions import Decision, Deferred, Released, cite, place, prefix_order
from tidegate.select import Measurement
from tidegate.turn import Turn


def within(turn: Turn, staying: list[Decision]) -> tuple[list[Decision], list[Released]]:
    """A limit that was lowered releases those that no longer qualify first, then the fastest."""
    kept: list[Decision] = []
    over: list[Released] = []
    count: Counter[str] = Counter()
    for d in sorted(staying, key=lambda d: (d.action == "held", _order(turn, d.metrics), place(d))):
        limit = turn.rule.max_prefixes.get(d.pop)
        count[d.pop] += 1
        if limit is None or count[d.pop] <= limit.value or turn.standstill(d.pop):
            kept.append(d)
        else:
            over.append(Released(d.pop, d.prefix, d.rule, d.arm, cite(limit.clause)))
    return kept, over


def admit(turn: Turn, staying: list[Decision]) -> tuple[list[Decision], list[Deferred]]:
    """The slowest first. Held-out prefixes count like treated ones: both arms pass the same door.

    Planning again at one watermark is the same run: what it admitted is taken from the run's limit.
    """
    count = Counter(d.pop for d in staying)
    new = sum(d.admitted_at == turn.watermark for d in staying)
    admitted, waiting = [], []
    for m in _entrants(turn):
        if because := _barred(turn, m.pop, count[m.pop], new):
            waiting.append(Deferred(m.pop, m.prefix, turn.rule.name, because))
            continue
        count[m.pop] += 1
        new += 1
        admitted.append(_added(turn, m))
    return admitted, waiting


def _entrants(turn: Turn) -> list[Measurement]:
    """Those that qualify, were not selected before, and no earlier rule has; none outside the rule's schedule."""
    if not turn.active:
        return []
    found = [
        m
        for m in turn.evidence.qualifying
        if m.pop in turn.rule.pops
        and (m.pop, m.prefix) not in turn.taken
        and (m.pop, m.prefix) not in turn.before
    ]
    return sorted(found, key=lambda m: (_order(turn, m), m.pop, prefix_order(m.prefix)))


def _barred(turn: Turn, pop: str, selected: int, new: int) -> str | None:
    """What keeps the next prefix out of a POP."""
    if because := turn.standstill(pop):
        return because
    per_pop, per_run = turn.rule.max_prefixes.get(pop), turn.rule.max_new_per_run
    if per_pop and selected >= per_pop.value:
        return cite(per_pop.clause)
    if per_run and new >= per_run.value:
        return cite(per_run.clause)
    return None


def _added(turn: Turn, m: Measurement) -> Decision:
    return Decision(
        pop=m.pop,
        prefix=m.prefix,
        rule=turn.rule.name,
        select=turn.select.name,
        action="added",
        arm=turn.arm(m.prefix),
        because=cite(turn.select.rank.clause),
        admitted_at=turn.watermark,
        arm_since=turn.watermark,
        qualified_at=turn.watermark,
        metrics=m,
    )


def _order(turn: Turn, metrics: Measurement | None) -> tuple[bool, int]:
    """The slowest first, by the end that the rank is taken from; who was not observed stands last."""
    value = (metrics and metrics.metric(turn.select.metric)) or 0
    rank = turn.select.rank
    highest = (
        rank.absolute.comparison in {">", ">="}
        if rank.share_ppm is None and rank.absolute
        else rank.side == "top"
    )
    return metrics is None, -value if highest else value
