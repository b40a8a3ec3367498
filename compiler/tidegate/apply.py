"""Whether a saved plan may be applied: what the guard is asked, and what makes a plan stale."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tidegate_dsl.model import Policy

from tidegate.contracts import sha256_digest
from tidegate.emit import generations
from tidegate.errors import ANSWER_IS_NO, Failure
from tidegate.fleet import fleet_document
from tidegate.guard import plan_document
from tidegate.plan import Plan, vars_of
from tidegate.times import parse_time

MAX_AGE: Final = timedelta(hours=1)


def refuse_stale(plan: Plan, policy: Policy, applied: Plan | None, now: datetime) -> None:
    """Compare a plan with the world that it was made for.

    Raises:
        Failure: another generation was applied since, policy or inventory changed, or the plan is over an hour old.
    """
    current = applied.generation if applied else None
    age = now - parse_time(plan.document["created_at"])
    reasons = {
        f"it was made against generation {plan.previous_generation or 'none'}, and {current or 'none'} is applied": (
            current not in {plan.previous_generation, plan.generation}
        ),
        f"{policy.path} changed since": plan.document["policy"]["digest"] != policy.digest,
        "the inventory changed since": plan.document["fleet_digest"]
        != sha256_digest(fleet_document(policy.fleet)),
        f"it is {int(age.total_seconds()) // 60} minutes old, and {int(MAX_AGE.total_seconds()) // 60} are allowed": (
            age > MAX_AGE
        ),
        f"telemetry up to {applied.document['watermark'] if applied else ''} has been applied already": (
            applied is not None and plan.watermark < applied.watermark
        ),
    }
    stale = [reason for reason, holds in reasons.items() if holds]
    if stale:
        raise Failure(
            f"the plan is stale: {'; '.join(stale)}",
            help=f"make a new one: tidegate plan {policy.path}",
            exit_code=ANSWER_IS_NO,
        )


def refuse_unknown_variables(inventory: Path, applied: Plan | None, plan: Plan | None) -> None:
    """The guard judges a change by what was applied before; where that is not known, it would allow too much.

    Args:
        inventory: the directory of hosts.yml.
        applied: the state directory's last applied plan.
        plan: the plan to apply, some of whose variables may stand already; None when one is made.

    Raises:
        Failure: the inventory holds variables of a generation that neither of the two made.
    """
    known = {known.generation for known in (applied, plan) if known}
    unknown = generations(inventory) - known
    if unknown:
        raise Failure(
            f"the inventory holds variables of generation {', '.join(sorted(unknown))},"
            f" and {applied.generation if applied else 'none'} is applied by this state directory",
            help="name the state directory that made them with `--state`, or apply its plan again; to start anew,"
            " remove inventory/group_vars/pop_*/tidegate.yml in a reviewed change",
            exit_code=ANSWER_IS_NO,
        )


def guard_input(plan: Plan, policy: Policy) -> dict[str, Any]:
    """What the guard is asked about a plan."""
    return plan_document(
        vars_by_pop={pop: vars_of(plan, pop) for pop in plan.pops},
        fleet=fleet_document(policy.fleet),
        as_of=plan.document["as_of"],
        watermark=plan.document["watermark"],
    )
