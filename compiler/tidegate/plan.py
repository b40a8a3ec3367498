"""The saved plan: what one run decided, as JSON that a person can review and a machine can check.

A plan names its generation by what the hosts would be told (claims, those of control hosts and learn settings,
nothing else), so a plan that changes nothing carries the generation that is already applied.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from tidegate_dsl.model import Policy, Pop

from tidegate.contracts import sha256_digest, validate
from tidegate.decisions import Decision, Deferred, GuardState, Outcome, Released
from tidegate.errors import ANSWER_IS_NO, Failure
from tidegate.files import read_text, write_atomically
from tidegate.times import format_time, parse_time
from tidegate.told import claims, control, learn_settings

SCHEMA_VERSION: Final = 1
TOLD: Final = ("claims", "control_claims", "control_hosts", "learn")  # all that the hosts of a POP are told
MAX_BYTES: Final = 256 * 1024 * 1024

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan as a document that meets schemas/plan.schema.json, and what is read from it most."""

    document: Document

    @property
    def generation(self) -> str:
        """The generation that this plan would put in place."""
        return str(self.document["generation"])

    @property
    def previous_generation(self) -> str | None:
        """The generation that it was made against; None for a fleet's first."""
        found = self.document["previous_generation"]
        return None if found is None else str(found)

    @property
    def changes_nothing(self) -> bool:
        """Whether the hosts would be told what they were told before."""
        return self.generation == self.previous_generation

    @property
    def pops(self) -> dict[str, Document]:
        """What was decided, by POP."""
        return dict(self.document["pops"])

    @property
    def watermark(self) -> datetime:
        """End of the last closed window that it rests on."""
        return parse_time(self.document["watermark"])

    def decisions(self) -> list[Decision]:
        """Its decisions as records; measurements are not carried over, they are taken anew."""
        return [
            Decision(
                pop=pop,
                prefix=d["prefix"],
                rule=d["rule"],
                select=d["select"],
                action=d["action"],
                arm=d["arm"],
                because=d["because"],
                admitted_at=parse_time(d["admitted_at"]),
                arm_since=parse_time(d["arm_since"]),
                qualified_at=parse_time(d["qualified_at"]),
                metrics=None,
            )
            for pop, decided in self.pops.items()
            for d in decided["decisions"]
        ]

    def guards(self) -> list[GuardState]:
        """The states of the policy's guards as records."""
        return [
            GuardState(pop, g["guard"], g["rule"], g["state"], g["because"], parse_time(g["since"]))
            for pop, decided in self.pops.items()
            for g in decided["guards"]
        ]


def build(
    policy: Policy,
    outcome: Outcome,
    observed: Mapping[str, int],
    previous: Plan | None,
    *,
    fleet_digest: str,
    as_of: datetime,
    created_at: datetime,
    watermark: datetime,
    telemetry: Mapping[str, Document],
) -> Plan:
    """The plan of an outcome; every POP of the fleet has its place in it, also where no rule applies.

    Args:
        policy: what decided.
        outcome: what was decided.
        observed: prefixes of the lookback, by POP.
        previous: the applied plan.
        fleet_digest: of the fleet's document.
        as_of: telemetry before this moment counts.
        created_at: now.
        watermark: end of the last closed window.
        telemetry: by POP, of `plan_telemetry.state_of_telemetry`.
    """
    pops = {pop.name: _pop(policy, outcome, pop, observed, previous, watermark) for pop in policy.fleet.pops}
    for pop, state in telemetry.items():
        pops[pop]["telemetry"] = state
    document: Document = {
        "schema_version": SCHEMA_VERSION,
        "generation": generation_of(pops),
        "previous_generation": previous.generation if previous else None,
        "created_at": format_time(created_at),
        "as_of": format_time(as_of),
        "watermark": format_time(watermark),
        "policy": {"path": policy.path, "digest": policy.digest},
        "fleet_digest": fleet_digest,
        "pops": pops,
    }
    document["digest"] = sha256_digest(document)
    validate(document, "plan", "the plan just made")
    return Plan(document)


def generation_of(pops: Mapping[str, Document]) -> str:
    """16 hex digits of the SHA-256 of the canonical JSON of all that every POP's hosts are told (`TOLD`)."""
    told = {pop: {key: body[key] for key in TOLD} for pop, body in pops.items()}
    return sha256_digest(told).removeprefix("sha256:")[:16]


def save(plan: Plan, path: Path) -> None:
    """Write a plan aside, then rename it into place.

    Raises:
        Failure: it cannot be written; what stood there stays.
    """
    write_atomically(path, json.dumps(plan.document, indent=1, sort_keys=True) + "\n")


def load(path: Path) -> Plan:
    """Read a plan back and prove that nobody changed it.

    Raises:
        Failure: no such file, not JSON, against the schema, or edited since it was saved.
    """
    try:
        document = json.loads(read_text(path, MAX_BYTES))
    except json.JSONDecodeError as error:
        raise Failure(
            f"{path}:{error.lineno}: not JSON: {error.msg}", help="make a new plan with `tidegate plan`"
        ) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets without end
        raise Failure(f"{path}: not a plan: {error}", help="make a new plan with `tidegate plan`") from error
    validate(document, "plan", str(path))
    body = {key: value for key, value in document.items() if key != "digest"}
    if sha256_digest(body) != document["digest"] or generation_of(body["pops"]) != document["generation"]:
        raise Failure(
            f"{path}: was edited after it was saved: its content does not match its digest",
            help="a plan is not edited: change the policy, then `tidegate plan` again",
            exit_code=ANSWER_IS_NO,
        )
    return Plan(document)


def vars_of(plan: Plan, pop: str) -> Document:
    """The variables of one POP, as schemas/vars.schema.json has them."""
    body, decided = plan.pops[pop], plan.document["watermark"]
    own = body.get("telemetry", {}).get("watermark") or decided
    return {
        "schema_version": SCHEMA_VERSION,
        "pop": pop,
        "generation": plan.generation,
        "previous_generation": plan.previous_generation,
        "policy_digest": plan.document["policy"]["digest"],
        "watermark": min(own, decided),
        "changes": body["changes"],
        **{key: body[key] for key in TOLD},
    }


def _pop(
    policy: Policy,
    outcome: Outcome,
    pop: Pop,
    observed: Mapping[str, int],
    previous: Plan | None,
    watermark: datetime,
) -> Document:
    told = claims(policy, outcome, pop.name)
    control_claims, control_hosts = control(policy, outcome, pop, watermark)
    metric = {select.name: select.metric for select in policy.selects}
    released = [r for r in outcome.released if r.pop == pop.name]
    before = previous.pops[pop.name]["claims"] if previous and pop.name in previous.pops else []
    return {
        "observed_prefixes": observed.get(pop.name, 0),
        "decisions": [_decision(d, metric[d.select]) for d in outcome.decisions if d.pop == pop.name],
        "released": [_released(r) for r in released],
        "deferred": [_deferred(d) for d in outcome.deferred if d.pop == pop.name],
        "guards": [_guard(g) for g in outcome.guards if g.pop == pop.name],
        "claims": told,
        "control_claims": control_claims,
        "control_hosts": control_hosts,
        "learn": learn_settings(policy, pop.name),
        "changes": _changes(told, before, {r.prefix for r in released if r.withdrawn}),
    }


def _changes(now: list[Document], before: list[Document], withdrawn: Collection[str]) -> Document:
    """Which prefixes get an algorithm that had none, and the other way round; windows as they stand are no change."""
    chosen, chosen_before = _selected(now), _selected(before)
    removed = [prefix for prefix in chosen_before if prefix not in chosen]
    return {
        "added": [prefix for prefix in chosen if prefix not in chosen_before],
        "removed": removed,
        "withdrawn": [prefix for prefix in removed if prefix in withdrawn],
    }


def _selected(claims: list[Document]) -> dict[str, None]:
    """Prefixes that get an algorithm, in the order of the claims."""
    return {str(claim["prefix"]): None for claim in claims if "congestion_control" in claim}


def _decision(d: Decision, metric: str) -> Document:
    m = d.metrics
    return {
        "prefix": d.prefix,
        "rule": d.rule,
        "select": d.select,
        "action": d.action,
        "arm": d.arm,
        "because": d.because,
        "admitted_at": format_time(d.admitted_at),
        "arm_since": format_time(d.arm_since),
        "qualified_at": format_time(d.qualified_at),
        "metrics": m
        and {
            "windows": m.windows,
            "lookback_windows": m.lookback_windows,
            "member_windows": m.member_windows,
            "flips": m.flips,
            "adjacent_pairs": m.adjacent_pairs,
            "value": m.metric(metric) or 0,
            "min_rtt_us": m.min_rtt,
            "retransmit_ppm": m.metric("retransmit_ratio") or 0,
        },
    }


def _released(r: Released) -> Document:
    return {"prefix": r.prefix, "rule": r.rule, "arm": r.arm, "because": r.because}


def _deferred(d: Deferred) -> Document:
    return {"prefix": d.prefix, "rule": d.rule, "because": d.because}


def _guard(g: GuardState) -> Document:
    return {
        "guard": g.guard,
        "rule": g.rule,
        "state": g.status,
        "because": g.because,
        "since": format_time(g.since),
    }
