"""Those that were selected before: kept, held, or released. No I/O, no clock."""

import ipaddress
from dataclasses import replace
from datetime import timedelta

from tidegate_dsl.membership import judge
from tidegate_dsl.model import Select

from tidegate.decisions import Decision, Key, Released, cite
from tidegate.select import Measurement, excluded_by, stays
from tidegate.turn import Turn, stopped


def incumbents(turn: Turn) -> tuple[list[Decision], list[Released]]:
    """What becomes of the prefixes that this rule selected before and no earlier rule of the file has now."""
    staying: list[Decision] = []
    leaving: list[Released] = []
    known = _known(turn)
    for key, prior in turn.before.items():
        if prior.rule != turn.rule.name or key in turn.taken:
            continue
        metrics, remains = known.get(key, (None, False))
        fate = _withdrawn(turn, prior) or _frozen(turn, prior, metrics, remains=remains)
        fate = fate or _disowned(turn, prior) or _judged(turn, prior, metrics, remains=remains)
        if isinstance(fate, Decision):
            staying.append(fate)
        else:
            leaving.append(fate)
    return staying, leaving


def taken_over(turn: Turn) -> list[Decision]:
    """What another rule selected before and this one has now, after a rename or a move: it is not new."""
    found = []
    for key, (metrics, remains) in _known(turn).items():
        prior = turn.before.get(key)
        if prior is None or prior.rule == turn.rule.name or key in turn.taken or not remains:
            continue
        # A frozen rule keeps what it has, so its prefixes are not to be had either.
        kept_back = stopped(turn.guards, prior.rule, prior.pop)
        if prior.pop not in turn.rule.pops or turn.stop(prior.pop) or not turn.active:
            continue
        if kept_back and kept_back.status == "frozen":
            continue
        found.append(_kept(turn, prior, metrics))
    return found


def _known(turn: Turn) -> dict[Key, tuple[Measurement, bool]]:
    """By prefix, its measurement, and whether it qualifies, by the `leave` bounds where it was selected before."""
    known = {
        (m.pop, m.prefix): (m, stays(turn.select, m) and _selected_by(turn, (m.pop, m.prefix)))
        for m in turn.evidence.previous
    }
    return known | {(m.pop, m.prefix): (m, True) for m in turn.evidence.qualifying}


def _selected_by(turn: Turn, key: Key) -> bool:
    """Whether the `leave` bounds of this turn's select are for a prefix: it was this select's before."""
    prior = turn.before.get(key)
    return prior is not None and (prior.rule == turn.rule.name or prior.select == turn.select.name)


def _withdrawn(turn: Turn, prior: Decision) -> Released | None:
    """Taken away on purpose: outside the schedule, or by a guard."""
    stop = turn.stop(prior.pop)
    if turn.rule.active and not turn.active:
        because = cite(turn.rule.active.clause)
    elif stop and stop.status == "released":
        because = stop.because
    else:
        return None
    return replace(_released(turn, prior, because), withdrawn=True)


def _frozen(turn: Turn, prior: Decision, metrics: Measurement | None, *, remains: bool) -> Decision | None:
    """Kept as it is, its arm too; it leaves, if it would, in the first run that is not frozen."""
    stop = turn.stop(prior.pop)
    if stop is None or prior.pop not in turn.rule.pops:
        return None
    if remains and metrics:
        return replace(_kept(turn, prior, metrics), arm=prior.arm)
    return replace(prior, select=turn.select.name, action="held", because=stop.because, metrics=metrics)


def _disowned(turn: Turn, prior: Decision) -> Released | None:
    """No longer the rule's to decide: the policy was changed."""
    if prior.pop not in turn.rule.pops:
        return _released(turn, prior, f"{turn.rule.name} does not apply in {prior.pop} any more")
    length = turn.measured_length(prior.prefix)
    if length != ipaddress.ip_network(prior.prefix).prefixlen:
        # Held beside the prefix that now covers it, a held-out one would be treated after all.
        return _released(turn, prior, f"{turn.select.name} measures by /{length} now")
    return None


def _judged(
    turn: Turn, prior: Decision, metrics: Measurement | None, *, remains: bool
) -> Decision | Released:
    """Kept while it fulfils the bounds, held for the hold time, then released."""
    select = turn.select
    if remains and metrics:
        return _kept(turn, prior, metrics)
    failing = _failing(select, metrics)
    if select.hold and turn.watermark - prior.qualified_at < timedelta(microseconds=select.hold_us):
        because = f"{cite(select.hold)}; {failing}"
        arm = turn.arm(prior.prefix)
        return replace(prior, select=select.name, action="held", arm=arm, because=because, metrics=metrics)
    return _released(turn, prior, failing)


def _kept(turn: Turn, prior: Decision, metrics: Measurement) -> Decision:
    return replace(
        prior,
        rule=turn.rule.name,
        select=turn.select.name,
        action="kept",
        arm=turn.arm(prior.prefix),
        because=cite(turn.select.rank.clause),
        qualified_at=turn.watermark,
        metrics=metrics,
    )


def _released(turn: Turn, prior: Decision, because: str) -> Released:
    return Released(prior.pop, prior.prefix, turn.rule.name, prior.arm, because)


def _failing(select: Select, metrics: Measurement | None) -> str:
    """The first clause whose `leave` bound a prefix fails, in the order in which selection applies them."""
    if metrics is None:
        return "not observed in the lookback"
    _, reason = judge(select, metrics.timeline, selected=True)
    bound = {
        "windows": select.min_windows,
        "duty_cycle": select.min_duty_cycle,
        "flap_rate": select.max_flap_rate,
    }.get(reason or "")
    if bound:
        return cite(bound.clause)
    if excluded := excluded_by(select, metrics, selected=True):
        return cite(excluded.clause)
    return cite(select.rank.clause)
