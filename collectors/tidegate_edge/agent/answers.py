"""What each request has the daemon do: a table of commands."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tidegate_edge.errors import ANSWER_IS_NO, BAD_INPUT, MISSING_PART, Failure
from tidegate_edge.steer.rivals import find_rivals
from tidegate_edge.steer.steering import steering_of

from .documents import (
    applied_document,
    claims_document,
    default_document,
    probation_document,
    remarks_document,
)
from .learning import Learning
from .lifecycle import Lifecycle
from .peer import Access, Peer
from .protocol import Answer, Document, Request, read_sent
from .reconcile import Applied
from .starving import Starving
from .steering_file import SteeringFile
from .why import peer_address, why_document

MOST_PROBATION_NS: Final = 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class Told:
    """All that requests ask about.

    Attributes:
        lifecycle: of the generations.
        learning: of windows.
        starving: of BBR for CPU.
        steering: the steering file that Ansible writes.
        state: the state directory.
        pins: where BPF's objects are pinned.
    """

    lifecycle: Lifecycle
    learning: Learning
    starving: Starving
    steering: SteeringFile
    state: Path
    pins: Path


Do = Callable[[Told, Request], Answer]


def answer(told: Told, request: Request, peer: Peer, access: Access) -> Answer:
    """Do what a request asks, if its peer may ask it; a failure is an answer too."""
    try:
        return _permitted(request, peer, access)(told, request)
    except Failure as failure:
        return Answer(failure.exit_code, None, failure.message, failure.help)


def status(told: Told, _request: Request) -> Answer:
    """The kernel read back, beside what is wanted."""
    document = status_document(told)
    matches = document["matches"]
    file = document["steering_file"]
    # A host to which no generation came yet, or that was flushed, needs no file.
    if file["error"] and (file["present"] or document["generation"]):
        return Answer(
            BAD_INPUT, document, file["error"], "the last good generation stays; write the file again"
        )
    return Answer(0 if matches else ANSWER_IS_NO, document)


def status_document(told: Told) -> Document:
    """What `status` prints.

    Raises:
        Failure: the kernel does not answer.
    """
    lifecycle, reconciler = told.lifecycle, told.lifecycle.reconciler
    steering, wanted, held = reconciler.steering, reconciler.wanted, reconciler.held()
    default = reconciler.default(steering)
    claims = claims_document(wanted, reconciler.left, held)
    trouble = lifecycle.trouble or reconciler.trouble
    effective = held.attached or not wanted.settings
    return {
        "generation": steering.generation if steering else None,
        "matches": effective
        and default.before == default.after
        and all(each["state"] in {"holds", "not applied"} for each in claims)
        and not trouble,
        "backend": reconciler.backend.name,
        "backend_because": reconciler.choice.why,
        "variant": held.variant,
        "attached": held.attached,
        "kernel_generation": held.generation,
        "claims": claims,
        **remarks_document(wanted, reconciler.outcome),
        "default_congestion_control": default_document(default),
        "pending": probation_document(lifecycle.probation()),
        "drift": {
            "repaired": reconciler.drift.repaired,
            "followed": reconciler.drift.followed,
            "last": list(reconciler.drift.last),
        },
        "reverted": lifecycle.reverted,
        "learned": told.learning.document(),
        "starved": told.starving.document(),
        "trouble": trouble,
        "steering_file": told.steering.document(),
        "rivals": [asdict(each) for each in find_rivals(pins=told.pins)],
    }


def apply(told: Told, request: Request) -> Answer:
    """A generation comes: for good, on probation, or only to be foreseen."""
    file = read_sent(request)
    steering = steering_of(file.text, file.name)
    backend = told.lifecycle.reconciler.backend.name
    if request.arguments.get("dry_run"):
        foreseen = told.lifecycle.reconciler.foresee(steering)
        return Answer(0, applied_document(steering.generation, backend, foreseen, None))
    probation_ns = request.arguments.get("confirm_within_ns")
    if probation_ns is not None and not (
        isinstance(probation_ns, int) and 0 < probation_ns <= MOST_PROBATION_NS
    ):
        raise Failure("a generation is confirmed within a day", exit_code=BAD_INPUT)
    applied = told.lifecycle.apply(steering, file.text, probation_ns)
    return _done(applied_document(steering.generation, backend, applied, told.lifecycle.probation()))


def confirm(told: Told, _request: Request) -> Answer:
    """The generation on probation stays."""
    return Answer(0, {"generation": told.lifecycle.confirm(), "confirmed": True})


def roll_back(told: Told, request: Request) -> Answer:
    """The generation before comes back."""
    if request.arguments.get("dry_run"):
        steering, foreseen = told.lifecycle.foresee_roll_back()
        backend = told.lifecycle.reconciler.backend.name
        name = steering.generation if steering else None
        return Answer(0, applied_document(name, backend, foreseen, None))
    return _changed(told, told.lifecycle.roll_back())


def flush(told: Told, request: Request) -> Answer:
    """All that is ours goes."""
    if request.arguments.get("dry_run"):
        return _changed(told, told.lifecycle.reconciler.foresee(None), generation=False)
    return _changed(told, told.lifecycle.flush())


def why(told: Told, request: Request) -> Answer:
    """What applied to the connections of a peer."""
    address = peer_address(str(request.arguments.get("peer", "")))
    return Answer(0, why_document(address, told.lifecycle.reconciler))


COMMANDS: Final[Mapping[str, Do]] = {
    "status": status,
    "why": why,
    "apply": apply,
    "confirm": confirm,
    "rollback": roll_back,
    "flush": flush,
}
CHANGES: Final = frozenset({"apply", "confirm", "rollback", "flush"})


def _permitted(request: Request, peer: Peer, access: Access) -> Do:
    do = COMMANDS.get(request.command)
    if do is None:
        raise Failure(f"the daemon knows no command `{request.command}`", exit_code=BAD_INPUT)
    # A dry run too: it reads a file that may be slow or large, and has the kernel load an algorithm's module.
    changes = request.command in CHANGES
    if not (access.may_change(peer) if changes else access.may_read(peer)):
        raise Failure(
            f"`{request.command}` was refused: user {peer.uid} may not ask for it",
            help="run it as root" + ("" if changes else ", or as a member of the socket's group"),
            exit_code=MISSING_PART,
        )
    return do


def _changed(told: Told, applied: Applied, *, generation: bool = True) -> Answer:
    reconciler = told.lifecycle.reconciler
    name = reconciler.steering.generation if generation and reconciler.steering else None
    return _done(applied_document(name, reconciler.backend.name, applied, told.lifecycle.probation()))


def _done(document: Document) -> Answer:
    return Answer(ANSWER_IS_NO if document["failed"] else 0, document)
