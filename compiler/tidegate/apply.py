"""Whether a saved plan may be applied now: stale plans are refused, whatever made them stale."""

from datetime import datetime, timedelta
from typing import Final

from tidegate_dsl.model import Policy

from tidegate.contracts import sha256_digest
from tidegate.errors import ANSWER_IS_NO, Failure
from tidegate.fleet import fleet_document
from tidegate.plan import Plan, parse_time

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
