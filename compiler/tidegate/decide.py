"""Who is treated, held, held out and released: limits, hold time and hold-out. No I/O, no clock.

The previous generation's decisions and today's measurements go in; this generation's decisions come out. For
one input there is one output, on every machine.
"""

import hashlib
import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from tidegate_dsl.membership import judge
from tidegate_dsl.model import Apply, Clause, Learn, Policy, Select

from tidegate.select import Measurement, excluded_by

Action = Literal["added", "kept", "held"]
Arm = Literal["treated", "held_out"]
Key = tuple[str, str]  # (POP, prefix)


@dataclass(frozen=True, slots=True)
class Decision:
    """One selected prefix of one POP."""

    pop: str
    prefix: str
    rule: str
    select: str
    action: Action
    arm: Arm
    because: str
    admitted_at: datetime
    qualified_at: datetime
    metrics: Measurement | None


@dataclass(frozen=True, slots=True)
class Released:
    """A prefix that was selected in the previous generation and is not any more."""

    pop: str
    prefix: str
    rule: str
    arm: Arm
    because: str


@dataclass(frozen=True, slots=True)
class Deferred:
    """A prefix that qualifies and is left out for now, by a limit."""

    pop: str
    prefix: str
    rule: str
    because: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What telemetry says of one select: who qualifies, and the measurements of those selected before."""

    qualifying: tuple[Measurement, ...]
    previous: tuple[Measurement, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """All decisions of one run, sorted by POP and prefix."""

    decisions: tuple[Decision, ...]
    released: tuple[Released, ...]
    deferred: tuple[Deferred, ...]


def decide(
    policy: Policy, evidence: Mapping[str, Evidence], previous: Iterable[Decision], watermark: datetime
) -> Outcome:
    """Apply every rule in the order of the file; of two rules that claim a prefix in one POP the first wins."""
    before = {(d.pop, d.prefix): d for d in previous}
    selects = {select.name: select for select in policy.selects}
    decided: dict[Key, Decision] = {}
    released: dict[Key, Released] = {}
    deferred: list[Deferred] = []
    for rule in policy.applies:
        select = selects[rule.select]
        seen = evidence[select.name]
        staying, leaving = _incumbents(rule, select, seen, before, decided, watermark)
        staying += _taken_over(rule, select, seen, before, decided, watermark)
        staying, over = _within(rule, select, staying)
        entrants = [
            m
            for m in seen.qualifying
            if m.pop in rule.pops and (m.pop, m.prefix) not in decided and (m.pop, m.prefix) not in before
        ]
        admitted, waiting = _admit(rule, select, entrants, staying, watermark)
        for decision in [*staying, *admitted]:
            decided[decision.pop, decision.prefix] = decision
        released |= {(r.pop, r.prefix): r for r in [*leaving, *over]}
        deferred += waiting
    orphans = (d for key, d in before.items() if key not in decided and key not in released)
    for d in orphans:
        released[d.pop, d.prefix] = Released(d.pop, d.prefix, d.rule, d.arm, "no rule covers it any more")
    return Outcome(
        tuple(sorted(decided.values(), key=_place)),
        tuple(sorted((r for key, r in released.items() if key not in decided), key=_place)),
        tuple(sorted((d for d in deferred if (d.pop, d.prefix) not in decided | released), key=_place)),
    )


def held_out(rule: str, prefix: str, share_ppm: int) -> bool:
    """Whether a prefix is control: by a hash salted with the rule's name, so that rules draw apart.

    The first 8 bytes of SHA-256, as a fraction of 2^64, compared as integers. The POP is no part of it: a prefix
    that several POPs serve is treated in all of them or in none.
    """
    draw = int.from_bytes(hashlib.sha256(f"{rule}\n{prefix}".encode()).digest()[:8], "big")
    return draw * 1_000_000 < share_ppm << 64


def claims(policy: Policy, outcome: Outcome, pop: str) -> list[dict[str, object]]:
    """What the POP's hosts are told: one claim for each treated prefix, in address order."""
    rules = {rule.name: rule for rule in policy.applies}
    treated = [d for d in outcome.decisions if d.pop == pop and d.arm == "treated"]
    return [_claim(rules[d.rule], d) for d in sorted(treated, key=lambda d: prefix_order(d.prefix))]


def learn_settings(policy: Policy, pop: str) -> dict[str, object] | None:
    """The POP's Riptide settings; of several learn blocks that name a POP the first wins."""
    learn: Learn | None = next((learn for learn in policy.learns if pop in learn.pops), None)
    if learn is None:
        return None
    others = {p for other in policy.fleet.pops if other.name != pop for p in other.own_prefixes}
    return {
        "toward": sorted(others, key=prefix_order),
        "initcwnd_min": learn.initcwnd_min,
        "initcwnd_max": learn.initcwnd_max,
        "smooth_ppm": learn.smooth_ppm,
        "every_us": learn.every_us,
        "expire_us": learn.expire_us,
    }


def prefix_order(prefix: str) -> tuple[int, int, int]:
    """Family, address, length."""
    network = ipaddress.ip_network(prefix)
    return network.version, int(network.network_address), network.prefixlen


def _claim(rule: Apply, decision: Decision) -> dict[str, object]:
    claim: dict[str, object] = {"prefix": decision.prefix, "congestion_control": rule.congestion_control}
    if min_bytes := rule.min_bytes[decision.pop]:
        claim |= {"min_bytes": min_bytes, "ungated_fallback": rule.ungated_fallback}
    return claim


def _incumbents(
    rule: Apply,
    select: Select,
    evidence: Evidence,
    before: Mapping[Key, Decision],
    decided: Mapping[Key, Decision],
    watermark: datetime,
) -> tuple[list[Decision], list[Released]]:
    """Those that this rule selected before: kept while they qualify, held for the hold time, then released."""
    qualifying = {(m.pop, m.prefix): m for m in evidence.qualifying}
    measured = {(m.pop, m.prefix): m for m in evidence.previous}
    hold = timedelta(microseconds=select.hold_us)
    staying, leaving = [], []
    for key, prior in before.items():
        if prior.rule != rule.name or key in decided:
            continue
        arm = _arm(rule, prior.prefix)
        measured_by = _measured_length(select, prior.prefix)
        if measured_by != ipaddress.ip_network(prior.prefix).prefixlen:
            # Held beside the prefix that now covers it, a held-out one would be treated after all.
            leaving.append(
                Released(*key, rule.name, prior.arm, f"{select.name} measures by /{measured_by} now")
            )
        elif prior.pop not in rule.pops:
            leaving.append(
                Released(*key, rule.name, prior.arm, f"{rule.name} does not apply in {prior.pop} any more")
            )
        elif metrics := qualifying.get(key):
            because = _cite(select.rank.clause)
            staying.append(
                replace(
                    prior,
                    select=select.name,
                    action="kept",
                    arm=arm,
                    because=because,
                    qualified_at=watermark,
                    metrics=metrics,
                )
            )
        elif watermark - prior.qualified_at < hold and select.hold:
            because = f"{_cite(select.hold)}; {_failing(select, measured.get(key))}"
            staying.append(
                replace(
                    prior,
                    select=select.name,
                    action="held",
                    arm=arm,
                    because=because,
                    metrics=measured.get(key),
                )
            )
        else:
            leaving.append(Released(*key, rule.name, prior.arm, _failing(select, measured.get(key))))
    return staying, leaving


def _taken_over(
    rule: Apply,
    select: Select,
    evidence: Evidence,
    before: Mapping[Key, Decision],
    decided: Mapping[Key, Decision],
    watermark: datetime,
) -> list[Decision]:
    """What another rule selected before and this one has now, after a rename or a move: it is not new."""
    return [
        replace(
            before[key],
            rule=rule.name,
            select=select.name,
            action="kept",
            arm=_arm(rule, m.prefix),
            because=_cite(select.rank.clause),
            qualified_at=watermark,
            metrics=m,
        )
        for m in evidence.qualifying
        if (key := (m.pop, m.prefix)) in before
        and before[key].rule != rule.name
        and m.pop in rule.pops
        and key not in decided
    ]


def _measured_length(select: Select, prefix: str) -> int:
    """The length by which a select measures a prefix's family."""
    version = ipaddress.ip_network(prefix).version
    return select.prefix_length_ipv4 if version == 4 else select.prefix_length_ipv6


def _within(rule: Apply, select: Select, staying: list[Decision]) -> tuple[list[Decision], list[Released]]:
    """A limit that was lowered releases those that no longer qualify first, then the fastest."""
    if rule.max_prefixes_per_pop is None:
        return staying, []
    kept: list[Decision] = []
    over: list[Released] = []
    count: dict[str, int] = {}
    for d in sorted(staying, key=lambda d: (d.action == "held", _measured(select, d), _place(d))):
        count[d.pop] = count.get(d.pop, 0) + 1
        if count[d.pop] <= rule.max_prefixes_per_pop.value:
            kept.append(d)
        else:
            over.append(Released(d.pop, d.prefix, d.rule, d.arm, _cite(rule.max_prefixes_per_pop.clause)))
    return kept, over


def _admit(
    rule: Apply, select: Select, entrants: list[Measurement], staying: list[Decision], watermark: datetime
) -> tuple[list[Decision], list[Deferred]]:
    """The slowest first. Held-out prefixes count like treated ones: both arms pass the same door.

    Planning again at one watermark is the same run: what it admitted is taken from the run's limit.
    """
    count: dict[str, int] = {}
    for d in staying:
        count[d.pop] = count.get(d.pop, 0) + 1
    new = sum(d.admitted_at == watermark for d in staying)
    admitted, waiting = [], []
    for m in sorted(entrants, key=lambda m: (m.metric(select.metric) or 0, m.pop, prefix_order(m.prefix))):
        limit = None
        if rule.max_prefixes_per_pop and count.get(m.pop, 0) >= rule.max_prefixes_per_pop.value:
            limit = rule.max_prefixes_per_pop
        elif rule.max_new_per_run and new >= rule.max_new_per_run.value:
            limit = rule.max_new_per_run
        if limit:
            waiting.append(Deferred(m.pop, m.prefix, rule.name, _cite(limit.clause)))
            continue
        count[m.pop] = count.get(m.pop, 0) + 1
        new += 1
        admitted.append(
            Decision(
                m.pop,
                m.prefix,
                rule.name,
                select.name,
                "added",
                _arm(rule, m.prefix),
                _cite(select.rank.clause),
                watermark,
                watermark,
                m,
            )
        )
    return admitted, waiting


def _measured(select: Select, decision: Decision) -> int:
    return (decision.metrics and decision.metrics.metric(select.metric)) or 0


def _arm(rule: Apply, prefix: str) -> Arm:
    return "held_out" if held_out(rule.name, prefix, rule.hold_out_ppm) else "treated"


def _failing(select: Select, metrics: Measurement | None) -> str:
    """The first clause that a prefix fails, in the order in which selection applies them."""
    if metrics is None:
        return "not observed in the lookback"
    _, reason = judge(select, metrics.timeline)
    bound = {
        "windows": select.min_windows,
        "duty_cycle": select.min_duty_cycle,
        "flap_rate": select.max_flap_rate,
    }.get(reason or "")
    if bound:
        return _cite(bound.clause)
    if excluded := excluded_by(select, metrics):
        return _cite(excluded.clause)
    return _cite(select.rank.clause)


def _cite(clause: Clause) -> str:
    return f"{clause.text} (line {clause.line})"


def _place(item: Decision | Released | Deferred) -> tuple[str, tuple[int, int, int]]:
    return item.pop, prefix_order(item.prefix)
