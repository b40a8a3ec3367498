"""What the hosts of a POP are told: claims, the claims of control hosts, and how windows are learned."""

from collections.abc import Iterable
from datetime import datetime

from tidegate_dsl.model import Apply, Fleet, Learn, Policy, Pop

from tidegate.decisions import Decision, Outcome, prefix_order
from tidegate.experiment import control_hosts, experiment_of

Claim = dict[str, object]


def claims(policy: Policy, outcome: Outcome, pop: str, *, without: str | None = None) -> list[Claim]:
    """One claim for each treated prefix and each window that is set as it stands; one a prefix, in address order.

    Args:
        policy: the rules and windows.
        outcome: what was decided.
        pop: whose hosts.
        without: the name of a rule whose prefixes are left out.
    """
    rules = {rule.name: rule for rule in policy.applies}
    treated = (d for d in outcome.decisions if (d.pop, d.arm) == (pop, "treated") and d.rule != without)
    merged: dict[str, Claim] = {d.prefix: _steered(rules[d.rule], d) for d in treated}
    for setting in policy.initcwnds:
        for prefix in setting.prefixes if pop in setting.pops else ():
            merged.setdefault(prefix, {"prefix": prefix}).setdefault("initcwnd", setting.segments)
    return [merged[prefix] for prefix in sorted(merged, key=prefix_order)]


def control(policy: Policy, outcome: Outcome, pop: Pop, watermark: datetime) -> tuple[list[Claim], list[str]]:
    """The claims of a POP's control hosts, and who these are.

    Both are empty where no experiment runs, or where its rule has no claims: then all hosts are told the same.
    """
    experiment = experiment_of(policy, pop.name, watermark)
    if experiment is None:
        return [], []
    hosts = control_hosts(experiment, pop.name, pop.hosts, watermark)
    told = claims(policy, outcome, pop.name, without=experiment.on)
    if not hosts or told == claims(policy, outcome, pop.name):
        return [], []
    return told, list(hosts)


def learn_settings(policy: Policy, pop: str) -> dict[str, object] | None:
    """The POP's Riptide settings; of several learn blocks that name a POP the first wins.

    What a block need not say is left out where it is not said.
    """
    learn: Learn | None = next((learn for learn in policy.learns if pop in learn.pops), None)
    if learn is None:
        return None
    settings: dict[str, object] = {
        "toward": sorted(set(_destinations(learn, policy.fleet, pop)), key=prefix_order),
        "initcwnd_min": learn.initcwnd_min,
        "initcwnd_max": learn.initcwnd_max,
        "smooth_ppm": learn.smooth_ppm,
        "every_us": learn.every_us,
        "expire_us": learn.expire_us,
    }
    if learn.hold_out_ppm:
        settings["hold_out_ppm"] = learn.hold_out_ppm
    if learn.initrwnd is not None:
        settings["initrwnd"] = learn.initrwnd
    return settings


def _destinations(learn: Learn, fleet: Fleet, pop: str) -> Iterable[str]:
    if "peer_pops" in learn.toward:
        yield from (prefix for other in fleet.pops if other.name != pop for prefix in other.own_prefixes)
    if "origins" in learn.toward:
        yield from fleet.origins


def _steered(rule: Apply, decision: Decision) -> Claim:
    claim: Claim = {"prefix": decision.prefix, "congestion_control": rule.congestion_control}
    if min_bytes := rule.min_bytes[decision.pop]:
        claim |= {"min_bytes": min_bytes, "ungated_fallback": rule.ungated_fallback}
    return claim
