"""Those that were selected before: kept, held, or released. No I/O, no clock."""

import ipaddress
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from tidegate_dsl.model import Select, judge

from tidegate.decisions import Decision, Key, Released, cite
from tidegate.select import Measurement, excluded_by, stays
from tidegate.turn import Turn, stopped

Known = Mapping[Key, tuple[Measurement, bool]]  # what is measured of a prefix, and whether it stays by that


def incumbents(turn: Turn) -> tuple[list[Decision], list[Released]]:
    """What becomes of the prefixes that were selected before and no earlier rule of the file has now.

    Those of this rule stay or leave. Those of another that this one has now, after a rename or a move, are not new.
    """
    known = _known(turn)
    staying, leaving = _own(turn, known)
    return staying + _taken_over(turn, known), leaving


def _own(turn: Turn, known: Known) -> tuple[list[Decision], list[Released]]:
    staying: list[Decision] = []
    leaving: list[Released] = []
    for key, prior in turn.before.items():
        if prior.rule != turn.rule.name or key in turn.taken:
            continue
        metrics, remains = known.get(key, (None, False))
        gone = _withdrawn(turn, prior) or _disowned(turn, prior)
        kept = gone or _frozen(turn, prior, metrics, remains=remains)
        fate = kept or _judged(turn, prior, metrics, remains=remains)
        if isinstance(fate, Decision):
            staying.append(fate)
        else:
            leaving.append(fate)
    return staying, leaving


def _taken_over(turn: Turn, known: Known) -> list[Decision]:
    return [
        _kept(turn, turn.before[key], metrics)
        for key, (metrics, remains) in known.items()
        if remains and key in turn.before and key not in turn.taken and _to_be_had(turn, turn.before[key])
    ]


def _to_be_had(turn: Turn, prior: Decision) -> bool:
    """Whether this rule may take a prefix that another had; a frozen rule takes nothing and gives nothing."""
    if prior.rule == turn.rule.name or prior.pop not in turn.rule.pops or not turn.active:
        return False
    giving = stopped(turn.guards, prior.rule, prior.pop)
    return turn.standstill(prior.pop) is None and not (giving and giving.status == "frozen")


def _known(turn: Turn) -> Known:
    """By prefix; the `leave` bounds count for one that this select had before."""
    qualifying = {(m.pop, m.prefix): (m, True) for m in turn.evidence.qualifying}
    others = (m for m in turn.evidence.previous if (m.pop, m.prefix) not in qualifying)
    return qualifying | {
        (m.pop, m.prefix): (m, _selected_by(turn, (m.pop, m.prefix)) and stays(turn.select, m))
        for m in others
    }


def _selected_by(turn: Turn, key: Key) -> bool:
    """Whether a prefix was this select's before, under this rule or another."""
    prior = turn.before.get(key)
    return prior is not None and (prior.rule == turn.rule.name or prior.select == turn.select.name)


def _withdrawn(turn: Turn, prior: Decision) -> Released | None:
    """Taken away on purpose: outside the schedule, or by a guard."""
    stop = turn.stop(prior.pop)
    if turn.rule.active and not turn.active:
        because = cite(turn.rule.active.clause)
    elif stop and stop.status == "released" and prior.pop not in turn.lagging:
        because = stop.because
    else:
        return None
    return replace(_released(turn, prior, because), withdrawn=True)


def _frozen(turn: Turn, prior: Decision, metrics: Measurement | None, *, remains: bool) -> Decision | None:
    """Kept as it is, its arm too; it leaves, if it would, in the first run that is not frozen."""
    because = turn.standstill(prior.pop)
    if because is None:
        return None
    if remains and metrics:
        return replace(_kept(turn, prior, metrics), arm=prior.arm, arm_since=prior.arm_since)
    return replace(prior, select=turn.select.name, action="held", because=because, metrics=metrics)


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
        return replace(_drawn(turn, prior), action="held", because=because, metrics=metrics)
    return _released(turn, prior, failing)


def _kept(turn: Turn, prior: Decision, metrics: Measurement) -> Decision:
    return replace(
        _drawn(turn, prior),
        action="kept",
        because=cite(turn.select.rank.clause),
        qualified_at=turn.watermark,
        metrics=metrics,
    )


def _drawn(turn: Turn, prior: Decision) -> Decision:
    """Under this rule, in the arm that it draws there; its time in the arm begins anew where either is another."""
    name, arm = turn.rule.name, turn.arm(prior.prefix)
    since = prior.arm_since if (prior.rule, prior.arm) == (name, arm) else turn.watermark
    return replace(prior, rule=name, select=turn.select.name, arm=arm, arm_since=since)


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
