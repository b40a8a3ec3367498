"""What a run did, would do, or found: documents for `--json`, lines for people. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from .claims import NotApplied, Wanted
from .default import DefaultChange
from .kernel import Rejected
from .prefix import Prefix, order
from .route import Route
from .routes import Notice, Plan
from .text import describe

BACKEND: Final = "routes"
VERDICTS: Final = {
    True: "the kernel matches",
    False: "the kernel does not match",
    None: "the routes match, as far as can be seen,",
}
Document: TypeAlias = dict[str, Any]


def change_document(
    generation: str | None,
    plan: Plan,
    after: Sequence[Route],
    rejected: Sequence[Rejected],
    default: DefaultChange,
    interfaces: Mapping[int, str],
) -> Document:
    """What `apply` and `flush` print.

    Args:
        generation: steering.json's; None for a flush.
        plan: what was to be done.
        after: the agent's routes read back, or, when nothing is to be changed, those planned.
        rejected: what the kernel refused.
        default: the default algorithm, before and after.
        interfaces: names by index.
    """
    old, new = _by_prefix(plan.before), _by_prefix(after)
    return {
        "generation": generation,
        "changed": old != new or default.before != default.after,
        "backend": BACKEND,
        "added": _texts(new.keys() - old.keys()),
        "replaced": _texts(prefix for prefix in old.keys() & new.keys() if old[prefix] != new[prefix]),
        "removed": _texts(old.keys() - new.keys()),
        "unchanged": sum(old[prefix] == new[prefix] for prefix in old.keys() & new.keys()),
        "not_applied": _not_applied(plan.not_applied),
        "failed": [{"prefix": str(each.route.prefix), "reason": each.reason} for each in rejected],
        "warnings": _warnings(plan.notices),
        "default_congestion_control": {
            "wanted": default.wanted,
            "before": default.before,
            "after": default.after,
            "changed": default.before != default.after,
        },
        "before": [describe(route, interfaces) for route in plan.before],
        "after": [describe(route, interfaces) for route in after],
    }


def status_document(
    generation: str | None,
    plan: Plan,
    wanted: Wanted,
    default: DefaultChange,
    interfaces: Mapping[int, str],
    *,
    bpf_seen: bool,
) -> Document:
    """What `status` prints: each claimed prefix, and whether the kernel holds what is wanted.

    Args:
        generation: steering.json's; None where there is none.
        plan: what would have to be done.
        wanted: settings by prefix.
        default: the default algorithm, found and to be.
        interfaces: names by index.
        bpf_seen: whether it is known that no BPF of the agent's steers; else `matches` is None where the routes fit.
    """
    wanted_prefixes = {route.prefix for route in plan.after}
    claimed = set(wanted.settings) | {each.prefix for each in plan.not_applied}
    drifted_default = default.before != default.after
    fits = not plan.changes and not drifted_default
    return {
        "generation": generation,
        "backend": BACKEND,
        "matches": None if fits and not bpf_seen else fits,
        "claims": [
            {
                "prefix": str(prefix),
                "state": state,
                "settings": wanted.settings[prefix].stated() if prefix in wanted.settings else {},
                "routes": [describe(route, interfaces) for route in plan.by_claim.get(prefix, ())],
            }
            for prefix, state in _states(sorted(claimed, key=order), plan)
        ],
        "surplus": [
            describe(route, interfaces)
            for change, route in plan.changes
            if change == "remove" and route.prefix not in wanted_prefixes
        ],
        "not_applied": _not_applied(plan.not_applied),
        "warnings": _warnings(plan.notices),
        "default_congestion_control": {
            "wanted": default.wanted,
            "found": default.before,
            "matches": not drifted_default,
        },
    }


def change_lines(document: Document, *, dry_run: bool) -> list[str]:
    """The same for people: one line for each kind of change that there is."""
    default = document["default_congestion_control"]
    counts = [f"{len(document[kind])} {kind}" for kind in ("added", "replaced", "removed") if document[kind]]
    counts.append(f"{document['unchanged']} unchanged")
    lines = [f"{'would change' if dry_run else document['backend']}: {', '.join(counts)}"]
    lines += [
        f"bpf: {'would remove' if dry_run else 'removed'} {each}" for each in document.get("bpf_removed", ())
    ]
    if default["changed"]:
        lines.append(f"default congestion control: {default['before']} -> {default['after']}")
    return (
        lines
        + _remarks(document)
        + [f"failed: {each['prefix']}: {each['reason']}" for each in document["failed"]]
    )


def status_lines(document: Document) -> list[str]:
    """The same for people: what does not hold, or that all does."""
    claims = document["claims"]
    lines = [
        f"{each['prefix']}: {each['state']}" for each in claims if each["state"] in {"missing", "drifted"}
    ]
    lines += [f"no claim wants: {route}" for route in document["surplus"]]
    default = document["default_congestion_control"]
    if not default["matches"]:
        lines.append(
            f"default congestion control: {default['found']}, wanted {default['wanted'] or 'the one before'}"
        )
    holds = sum(each["state"] == "holds" for each in claims)
    if document["generation"] is None and document["matches"] is not False:
        first = "no steering file, and no routes of the agent's: nothing is applied"
    else:
        verdict = f"{VERDICTS[document['matches']]} generation {document['generation'] or 'none'}"
        first = f"{verdict}: {holds} prefixes hold"
    return [
        first,
        *lines,
        *_remarks(document),
    ]


def _remarks(document: Document) -> list[str]:
    lines = [f"not applied: {e['prefix']} {e['attribute']}: {e['reason']}" for e in document["not_applied"]]
    return lines + [f"warning: {e['prefix'] or 'host'}: {e['reason']}" for e in document["warnings"]]


def _states(claimed: Sequence[Prefix], plan: Plan) -> Iterator[tuple[Prefix, str]]:
    held = set(plan.before)
    present = {route.prefix for route in plan.before}
    for prefix in claimed:
        routes = plan.by_claim.get(prefix, ())
        if not routes:
            yield prefix, "not applied"
        elif held.issuperset(routes):
            yield prefix, "holds"
        else:
            yield prefix, "drifted" if any(route.prefix in present for route in routes) else "missing"


def _by_prefix(routes: Sequence[Route]) -> dict[Prefix, list[Route]]:
    found: dict[Prefix, list[Route]] = {}
    for route in routes:
        found.setdefault(route.prefix, []).append(route)
    return found


def _texts(prefixes: Iterable[Prefix]) -> list[str]:
    return [str(prefix) for prefix in sorted(prefixes, key=order)]


def _not_applied(found: Sequence[NotApplied]) -> list[dict[str, str]]:
    return [
        {"prefix": str(each.prefix), "attribute": each.attribute, "reason": each.reason}
        for each in sorted(found, key=lambda each: (order(each.prefix), each.attribute))
    ]


def _warnings(notices: Sequence[Notice]) -> list[dict[str, str | None]]:
    return [{"prefix": str(each.prefix) if each.prefix else None, "reason": each.reason} for each in notices]
