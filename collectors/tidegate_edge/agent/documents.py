"""What the daemon answers, as documents for `--json` and as lines for people. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from typing import Final

from tidegate_edge.steer.backend import Held, Outcome
from tidegate_edge.steer.claims import Settings, Wanted
from tidegate_edge.steer.default import DefaultChange
from tidegate_edge.steer.prefix import Prefix, order

from .protocol import Document
from .reconcile import Applied

# In the words of `ip route`; the threshold is ours.
WORDS: Final = (("congestion_control", "congctl"), ("initcwnd", "initcwnd"), ("initrwnd", "initrwnd"))


@dataclass(frozen=True, slots=True)
class Probation:
    """A generation that waits to be confirmed, and what comes back unless it is."""

    generation: str
    left_ns: int
    previous: str | None


def describe(prefix: Prefix, settings: Settings) -> str:
    """`198.51.100.0/24 congctl bbr from 100000 bytes initcwnd 40`."""
    words = [str(prefix)]
    for name, word in WORDS:
        value = getattr(settings, name)
        if value is not None:
            words.append(f"{word} {value}")
        if value is not None and name == "congestion_control" and settings.min_bytes:
            words.append(f"from {settings.min_bytes} bytes")
    return " ".join(words)


def applied_document(
    generation: str | None, backend: str, applied: Applied, probation: Probation | None
) -> Document:
    """What `apply`, `rollback` and `flush` print; the keys are those of a run without a daemon."""
    before, after, wanted = applied.before, applied.after, applied.wanted
    default = applied.default
    return {
        "generation": generation,
        "changed": before != after or default.before != default.after,
        "backend": backend,
        "added": _texts(after.keys() - before.keys()),
        "replaced": _texts(each for each in before.keys() & after.keys() if before[each] != after[each]),
        "removed": _texts(before.keys() - after.keys()),
        "unchanged": sum(before[each] == after[each] for each in before.keys() & after.keys()),
        **remarks_document(wanted, applied.outcome),
        "default_congestion_control": {
            "wanted": default.wanted,
            "before": default.before,
            "after": default.after,
            "changed": default.before != default.after,
        },
        "before": _lines(before),
        "after": _lines(after),
        "pending": probation_document(probation),
    }


def claims_document(wanted: Wanted, left: Mapping[Prefix, Settings], held: Held) -> list[Document]:
    """Each prefix: what is wanted, what the kernel holds, and what the kernel counted.

    Args:
        wanted: by claims and learned windows.
        left: what the kernel took of it.
        held: what it holds now.
    """
    return [
        {
            "prefix": str(prefix),
            "state": _state(wanted.settings.get(prefix), left.get(prefix), held.settings.get(prefix)),
            "settings": _stated(wanted.settings.get(prefix)),
            "held": _stated(held.settings.get(prefix)),
            "counters": _counts(held.counters.get(prefix)),
        }
        for prefix in sorted(wanted.settings.keys() | held.settings.keys(), key=order)
    ]


def remarks_document(wanted: Wanted, outcome: Outcome | None) -> Document:
    """What is wanted and cannot be had, what the kernel refused, and what the operator should know."""
    not_applied = (*wanted.not_applied, *(outcome.not_applied if outcome else ()))
    warnings: list[Document] = [
        {
            "prefix": str(each.prefix),
            "reason": f"{each.attribute} {each.lost} yields to {each.won}: {each.reason}",
        }
        for each in wanted.conflicts
    ]
    warnings += [
        {"prefix": str(each.prefix) if each.prefix else None, "reason": each.reason}
        for each in (outcome.notices if outcome else ())
    ]
    return {
        "not_applied": [
            {"prefix": str(each.prefix), "attribute": each.attribute, "reason": each.reason}
            for each in sorted(not_applied, key=lambda each: (order(each.prefix), each.attribute))
        ],
        "failed": [
            {"prefix": str(each.route.prefix), "reason": each.reason}
            for each in (outcome.rejected if outcome else ())
        ],
        "warnings": warnings,
    }


def default_document(default: DefaultChange) -> Document:
    """The default algorithm of the host."""
    return {
        "wanted": default.wanted,
        "found": default.before,
        "matches": default.before == default.after,
    }


def probation_document(probation: Probation | None) -> Document | None:
    """The generation that waits to be confirmed, None where none does."""
    if probation is None:
        return None
    return {
        "generation": probation.generation,
        "seconds_left": round(probation.left_ns / 1e9, 1),
        "reverts_to": probation.previous,
    }


def status_lines(document: Document) -> list[str]:
    """A daemon's status for people: what does not hold first, or that all does."""
    claims, drift = document["claims"], document["drift"]
    holds = sum(each["state"] == "holds" for each in claims)
    verdict = "the kernel matches" if document["matches"] else "the kernel does not match"
    lines = [
        f"{verdict} generation {document['generation'] or 'none'} by {document['backend']}: {holds} prefixes hold",
        f"repaired {drift['repaired']} times, followed the host's routing {drift['followed']} times",
    ]
    if document["pending"]:
        pending = document["pending"]
        lines.append(
            f"not confirmed: {pending['generation']} goes back to {pending['reverts_to'] or 'nothing'} "
            f"in {pending['seconds_left']} s"
        )
    lines += [f"{each['prefix']}: {each['state']}" for each in claims if each["state"] != "holds"]
    starved = document["starved"]
    if starved and starved["fallen_back"]:
        lines.append(f"short of CPU: new connections get {starved['instead']} where the generation says BBR")
    lines += [f"short of CPU or not: {starved['trouble']}"] if starved and starved["trouble"] else []
    default = document["default_congestion_control"]
    if not default["matches"]:
        lines.append(f"default congestion control: {default['found']}, wanted {default['wanted']}")
    lines += [f"trouble: {document['trouble']}"] if document["trouble"] else []
    file = document["steering_file"]
    lines += [f"steering file: {file['error']}"] if file and file["error"] else []
    learned = document["learned"]
    lines += [f"learning: {learned['trouble']}"] if learned and learned["trouble"] else []
    lines += [f"failed: {e['prefix']}: {e['reason']}" for e in document["failed"]]
    lines += [f"not applied: {e['prefix']} {e['attribute']}: {e['reason']}" for e in document["not_applied"]]
    lines += [f"warning: {e['prefix'] or 'host'}: {e['reason']}" for e in document["warnings"]]
    return lines + [f"rival: {each['name']}: {each['what_to_do']}" for each in document["rivals"]]


def _state(wanted: Settings | None, left: Settings | None, held: Settings | None) -> str:
    if wanted == held:
        return "holds"
    if wanted is None:
        return "surplus"
    if left == held:
        return "not applied"
    return "missing" if held is None else "drifted"


def _stated(settings: Settings | None) -> Document:
    if settings is None:
        return {}
    stated: Document = {str(name): value for name, value in settings.stated().items()}
    return stated | {"min_bytes": settings.min_bytes} if settings.min_bytes else stated


def _counts(counters: object) -> Document | None:
    return asdict(counters) if is_dataclass(counters) and not isinstance(counters, type) else None


def _lines(settings: Mapping[Prefix, Settings]) -> list[str]:
    return [describe(prefix, settings[prefix]) for prefix in sorted(settings, key=order)]


def _texts(prefixes: Iterable[Prefix]) -> list[str]:
    return [str(prefix) for prefix in sorted(prefixes, key=order)]
