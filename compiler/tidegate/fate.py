"""What a plan made of one prefix, and what that rests on beside telemetry: limits, draws, schedules, guards."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from tidegate_dsl.model import Apply, Experiment, Initcwnd, Policy, Select

from tidegate.decisions import GuardState
from tidegate.experiment import experiment_of, is_off
from tidegate.plan import Plan
from tidegate.times import parse_time
from tidegate.turn import active, draw

Document = dict[str, Any]
StaticWindows = tuple[tuple[str, Initcwnd], ...]  # (prefix, the setting that names it), the longest first
Kind = Literal["added", "kept", "held", "released", "deferred", "absent", "elsewhere"]
PPM: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Trial:
    """The experiment that runs in a POP.

    Attributes:
        experiment: its block.
        hosts: the POP's control hosts, which get nothing of its rule.
        off: the rule is off in the period of the plan: every host is control.
    """

    experiment: Experiment
    hosts: tuple[str, ...]
    off: bool


@dataclass(frozen=True, slots=True)
class Fate:
    """What the plan says of a prefix in a POP, from the view of one select.

    Attributes:
        kind: what was decided; `absent`: the plan does not name it; `elsewhere`: a rule of another select decided.
        rule: the rule that decided; None where nothing did.
        because: the clause that is the reason, as the plan has it.
        arm: `treated` or `held_out`; None where it is not selected.
        admitted_at: when it came in.
        held_until: until when it stays without qualifying.
        rules: the rules of the select that apply in the POP.
        active: of these, the names of those whose schedule covers the plan's watermark.
        draw_ppm: what it drew under the rule that decided, of a million; below `hold_out_ppm` it is held out.
        hold_out_ppm: the share that the rule holds out.
        guards: the states of the guards of these rules in the POP, and until when one that released admits none.
        trial: the experiment on one of these rules in the POP.
        claim: what the POP's hosts are told of it; None: nothing.
        control_claim: likewise the control hosts.
        initcwnds: windows that the policy sets as they stand for prefixes that hold it, the longest first.
    """

    kind: Kind
    rule: str | None
    because: str
    arm: str | None
    admitted_at: datetime | None
    held_until: datetime | None
    rules: tuple[Apply, ...]
    active: frozenset[str]
    draw_ppm: int | None
    hold_out_ppm: int
    guards: tuple[tuple[GuardState, datetime | None], ...]
    trial: Trial | None
    claim: Document | None
    control_claim: Document | None
    initcwnds: StaticWindows


def was_selected(plan: Plan, policy: Policy, select: Select, pop: str, prefix: str) -> bool:
    """Whether a prefix was selected by a select before the plan was made, so that `leave` bounds counted."""
    body = plan.pops[pop]
    rules = {rule.name for rule in policy.applies if rule.select == select.name}
    stayed = [d for d in body["decisions"] if d["action"] in {"kept", "held"}]
    return any(each["prefix"] == prefix and each["rule"] in rules for each in [*stayed, *body["released"]])


def fate_of(plan: Plan, policy: Policy, select: Select, pop: str, prefix: str) -> Fate:
    """Read a prefix's fate from a plan and its policy; no telemetry is needed."""
    kind, entry = _entry(plan.pops[pop], prefix)
    of = _select_of(policy, entry)
    if of is not None and of.name != select.name:
        kind, entry = "elsewhere", {key: entry[key] for key in ("rule", "because")}
    rules = tuple(rule for rule in policy.applies if rule.select == select.name and pop in rule.pops)
    names = {rule.name for rule in rules}
    decided = next((rule for rule in rules if rule.name == entry.get("rule")), None)
    qualified = entry.get("qualified_at")
    body = plan.pops[pop]
    claim, initcwnds = told_of(plan, policy, pop, prefix)
    hold = of.hold_us if of and not body.get("telemetry", {}).get("lagging") else 0  # no time ends that
    return Fate(
        kind=kind,
        rule=entry.get("rule"),
        because=entry.get("because", ""),
        arm=entry.get("arm"),
        admitted_at=parse_time(entry["admitted_at"]) if "admitted_at" in entry else None,
        held_until=parse_time(qualified) + timedelta(microseconds=hold) if qualified and hold else None,
        rules=rules,
        active=frozenset(rule.name for rule in rules if active(rule, plan.watermark)),
        draw_ppm=draw(decided.name, prefix) * PPM >> 64 if decided else None,
        hold_out_ppm=decided.hold_out_ppm if decided else 0,
        guards=tuple(
            (state, _released_until(policy, state))
            for state in plan.guards()
            if state.pop == pop and state.rule in names
        ),
        trial=_trial(plan, policy, pop, names),
        claim=claim,
        control_claim=_covering(body["control_claims"], prefix),
        initcwnds=initcwnds,
    )


def told_of(plan: Plan, policy: Policy, pop: str, prefix: str) -> tuple[Document | None, StaticWindows]:
    """What a POP's hosts are told of a prefix, and the windows set as they stand for prefixes that hold it."""
    return _covering(plan.pops[pop]["claims"], prefix), _static(policy, pop, prefix)


def _entry(body: Document, prefix: str) -> tuple[Kind, Document]:
    for d in body["decisions"]:
        if d["prefix"] == prefix:
            return d["action"], d
    lists: tuple[tuple[Kind, list[Document]], ...] = (
        ("deferred", body["deferred"]),
        ("released", body["released"]),
    )
    for kind, entries in lists:
        for entry in entries:
            if entry["prefix"] == prefix:
                return kind, entry
    return "absent", {}


def _select_of(policy: Policy, entry: Document) -> Select | None:
    """Whose view decided; None where nothing did, or the policy has that rule no more."""
    named = {rule.name: rule.select for rule in policy.applies}.get(entry.get("rule", ""))
    return next((select for select in policy.selects if select.name == named), None)


def _released_until(policy: Policy, state: GuardState) -> datetime | None:
    guard = next((guard for guard in policy.guards if guard.name == state.guard), None)
    if guard is None or guard.release_us is None or state.status != "released":
        return None
    return state.since + timedelta(microseconds=guard.release_us)


def _trial(plan: Plan, policy: Policy, pop: str, rules: set[str]) -> Trial | None:
    experiment = experiment_of(policy, pop, plan.watermark)
    if experiment is None or experiment.on not in rules:
        return None
    off = is_off(experiment, pop, plan.watermark)
    return Trial(experiment, tuple(plan.pops[pop]["control_hosts"]), off)


def _covering(claims: Iterable[Document], prefix: str) -> Document | None:
    """What a host makes of its claims for a prefix: of each setting the longest claim's that has one."""
    network = ipaddress.ip_network(prefix)
    told: Document = {}
    for claim in sorted(claims, key=lambda claim: int(claim["prefix"].rpartition("/")[2])):
        if _holds(claim["prefix"], network):
            told |= {key: value for key, value in claim.items() if key != "prefix"}
    return told or None


def _static(policy: Policy, pop: str, prefix: str) -> StaticWindows:
    network = ipaddress.ip_network(prefix)
    found = [
        (held, setting)
        for setting in policy.initcwnds
        if pop in setting.pops
        for held in setting.prefixes
        if _holds(held, network)
    ]
    return tuple(sorted(found, key=lambda each: -int(each[0].rpartition("/")[2])))


def _holds(wide: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    other = ipaddress.ip_network(wide)
    return (
        other.version == network.version
        and other.prefixlen <= network.prefixlen
        and network.network_address in other
    )
