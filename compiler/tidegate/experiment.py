"""Who is control in an `experiment`: hosts by a draw, and all hosts of a POP in periods when the rule is off.

Both draws are hashes of names and of the period's number, so that anyone can repeat them; no state is kept.
"""

import hashlib
from collections.abc import Collection
from datetime import datetime
from typing import Final

from tidegate_dsl.model import Experiment, Policy

from tidegate.turn import active

PPM: Final = 1_000_000
US: Final = 1_000_000  # microseconds of a second


def experiment_of(policy: Policy, pop: str, watermark: datetime) -> Experiment | None:
    """The experiment that runs in a POP: its rule applies there and now. There is at most one."""
    rules = {rule.name: rule for rule in policy.applies}
    running = (
        experiment
        for experiment in policy.experiments
        if pop in rules[experiment.on].pops and active(rules[experiment.on], watermark)
    )
    return next(running, None)


def control_hosts(
    experiment: Experiment, pop: str, hosts: Collection[str], watermark: datetime
) -> tuple[str, ...]:
    """The hosts of a POP that get nothing of the rule on trial, sorted."""
    if is_off(experiment, pop, watermark):
        return tuple(sorted(set(hosts)))
    return drawn(experiment, hosts)


def drawn(experiment: Experiment, hosts: Collection[str]) -> tuple[str, ...]:
    """The share of hosts with the smallest SHA-256 of experiment and host: rounded down, at least one.

    None of fewer than two hosts: the rule would have none. A host that is added or leaves moves one other at most.
    """
    names = set(hosts)
    if not experiment.hosts_ppm or len(names) < 2:
        return ()
    count = max(1, experiment.hosts_ppm * len(names) // PPM)
    ordered = sorted(names, key=lambda host: (_digest(experiment.name, host), host))
    return tuple(sorted(ordered[:count]))


def is_off(experiment: Experiment, pop: str, watermark: datetime) -> bool:
    """Whether the rule is off in a POP in the period of the watermark.

    Periods count from 1970. Of each two, an even one and the next, a coin says in which the rule is off, so that
    over any number of pairs it is on as long as off, and no rhythm of the network can keep step with it.
    """
    if not experiment.switchback_us:
        return False
    period = int(watermark.timestamp()) * US // experiment.switchback_us
    coin = _digest(experiment.name, pop, str(period // 2))[0] & 1
    return (period & 1) == coin


def _digest(*parts: str) -> bytes:
    return hashlib.sha256("\n".join(parts).encode()).digest()
