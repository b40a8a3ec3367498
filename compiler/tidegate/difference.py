"""What a plan changes against the applied one, POP by POP: claims, and the settings that the policy gives hosts."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tidegate_dsl.vocabulary import Dimension, spell

from tidegate.plan import Plan

Document = dict[str, Any]

# Settings of a claim and of a learn block: what they are called, and their dimension.
_CLAIM: Final[dict[str, tuple[str, Dimension | None]]] = {
    "congestion_control": ("congestion_control", None),
    "min_bytes": ("transfer_size >=", "size"),
    "ungated_fallback": ("fallback ungated", None),
    "initcwnd": ("initcwnd", "segments"),
    "initrwnd": ("initrwnd", "segments"),
}
_LEARN: Final[dict[str, tuple[str, Dimension | None]]] = {
    "toward": ("toward", None),
    "initcwnd_min": ("learned initcwnd at least", "segments"),
    "initcwnd_max": ("learned initcwnd at most", "segments"),
    "smooth_ppm": ("smooth", "ratio"),
    "every_us": ("every", "duration"),
    "expire_us": ("expire", "duration"),
    "hold_out_ppm": ("hold_out of destinations", "ratio"),
    "initrwnd": ("initrwnd", "segments"),
}
_NOTHING: Final[Document] = {
    "claims": [],
    "control_claims": [],
    "control_hosts": [],
    "learn": None,
    "guards": [],
    "decisions": [],
    "released": [],
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that changes, in words; `where` says of what: how many claims, which prefixes, which block."""

    name: str
    before: str
    after: str
    where: str


@dataclass(frozen=True, slots=True)
class PopDifference:
    """What changes in one POP.

    Attributes:
        pop: where.
        entering: prefixes that are selected and were not.
        leaving: prefixes that were selected and are not.
        claims_added: claims for prefixes that had none.
        claims_removed: prefixes that have none any more.
        settings: what is told otherwise of prefixes that stay, to control hosts, and by learn blocks and guards.
    """

    pop: str
    entering: int
    leaving: int
    claims_added: int
    claims_removed: int
    settings: tuple[Setting, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes here."""
        return not (
            self.entering or self.leaving or self.claims_added or self.claims_removed or self.settings
        )


def difference(applied: Plan | None, plan: Plan) -> tuple[PopDifference, ...]:
    """Every POP of the plan, changed or not, and the POPs that left the fleet with what they had."""
    before = applied.pops if applied else {}
    left = dict.fromkeys((pop for pop in before if pop not in plan.pops), _NOTHING)
    return tuple(_of_pop(pop, before.get(pop, _NOTHING), body) for pop, body in (plan.pops | left).items())


def _of_pop(pop: str, before: Document, after: Document) -> PopDifference:
    old, new = _by_prefix(before["claims"]), _by_prefix(after["claims"])
    return PopDifference(
        pop=pop,
        entering=sum(d["action"] == "added" for d in after["decisions"]),
        leaving=len(after["released"]),
        claims_added=len(new.keys() - old.keys()),
        claims_removed=len(old.keys() - new.keys()),
        settings=(
            *_arms(before["decisions"], after["decisions"]),
            *_claims(old, new),
            *_learn(before["learn"], after["learn"]),
            *_hosts(before["control_hosts"], after["control_hosts"]),
            *_guards(before["guards"], after["guards"]),
        ),
    )


def _arms(old: list[Document], new: list[Document]) -> Iterator[Setting]:
    """Prefixes that stay selected and change sides, after a change of `hold_out` or of the rule's name."""
    was = {decision["prefix"]: decision["arm"] for decision in old}
    for before, after in (("treated", "held_out"), ("held_out", "treated")):
        moved = [d["prefix"] for d in new if d["arm"] == after and was.get(d["prefix"]) == before]
        if moved:
            yield Setting("arm", before.replace("_", " "), after.replace("_", " "), ", ".join(moved))


def _by_prefix(claims: list[Document]) -> dict[str, Document]:
    return {claim["prefix"]: claim for claim in claims}


def _claims(old: dict[str, Document], new: dict[str, Document]) -> Iterator[Setting]:
    """Settings of claims that stay, equal changes counted together."""
    counted = Counter(
        (name, _say(old[prefix].get(name), dimension), _say(new[prefix].get(name), dimension))
        for prefix in new
        if prefix in old
        for name, (_, dimension) in _CLAIM.items()
        if old[prefix].get(name) != new[prefix].get(name)
    )
    for (name, was, becomes), count in counted.items():
        yield Setting(_CLAIM[name][0], was, becomes, f"{count} claim{'' if count == 1 else 's'}")


def _learn(old: Document | None, new: Document | None) -> Iterator[Setting]:
    if old is None and new is None:
        return
    if old is None or new is None:
        yield Setting("learn", "off" if old is None else "on", "off" if new is None else "on", "learn")
        return
    for key, (name, dimension) in _LEARN.items():
        if old.get(key) != new.get(key):
            yield Setting(name, _say(old.get(key), dimension), _say(new.get(key), dimension), "learn")


def _hosts(old: list[str], new: list[str]) -> Iterator[Setting]:
    if old != new:
        yield Setting("control hosts", _say(old, None), _say(new, None), "experiment")


def _guards(old: list[Document], new: list[Document]) -> Iterator[Setting]:
    was = {guard["guard"]: guard for guard in old}
    now = {guard["guard"]: guard for guard in new}
    for name in dict.fromkeys([*was, *now]):
        states = [guards[name]["state"] if name in guards else "none" for guards in (was, now)]
        if states[0] != states[1]:
            because = now[name]["because"] if name in now else "the policy has it no more"
            yield Setting(f"guard {name}", states[0], states[1], because)


def _say(value: object, dimension: Dimension | None) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return spell(value, dimension) if dimension and isinstance(value, int) else str(value)
