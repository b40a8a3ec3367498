"""What a command does where no daemon runs: the kernel is changed by this process, by routes, under the lock."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from tidegate_edge.errors import MISSING_PART, Failure
from tidegate_edge.steer.algorithms import read_default, require_algorithms, require_default_allowed
from tidegate_edge.steer.claims import NOTHING_WANTED, Wanted, want
from tidegate_edge.steer.default import DefaultChange, decide_default, make_default, read_memory
from tidegate_edge.steer.generations import (
    Number,
    confirmed,
    drop_others,
    read_ledger,
    stage_ledger,
    store,
)
from tidegate_edge.steer.host_plan import plan_for_host
from tidegate_edge.steer.kernel import change_routes, interface_names, read_own_routes, require_net_admin
from tidegate_edge.steer.report import Document, change_document, status_document
from tidegate_edge.steer.routes import in_order
from tidegate_edge.steer.steering import read_file, read_steering, steering_of
from tidegate_edge.steer.turn import turn_to_read, turn_to_write

from .pinned import holding, holds, note, unpin


@dataclass(frozen=True, slots=True)
class Done:
    """What a run did or found, and why what follows the routes could not be done or seen, if so."""

    document: Document
    trouble: Failure | None = None


def apply_directly(steering: Path, state: Path, *, dry_run: bool) -> Done:
    """Make the kernel match a steering file.

    Raises:
        Failure: nothing was changed, and why.
    """
    if not dry_run:
        require_net_admin()
    unseen = _refuse_beside_bpf(state)
    if unseen and not dry_run:
        raise unseen
    with turn_to_read(state) if dry_run else turn_to_write(state):
        # Read inside the turn: a run that waited must not bring back an older generation.
        text = read_file(steering)
        claims = steering_of(text, steering)
        require_algorithms(claims.algorithms)
        if claims.default_congestion_control:
            require_default_allowed(claims.default_congestion_control)
        done = _change(claims.generation, want(claims), claims.default_congestion_control, state, dry_run)
        if dry_run:
            return Done(done.document, done.trouble or unseen)
        return done if done.trouble else _recorded(done, text, state)


def flush_directly(state: Path, pins: Path | None, *, dry_run: bool) -> Done:
    """Remove all that the agent set, and put the host's own default back.

    Args:
        state: the state directory.
        pins: of BPF's objects; None: wherever daemons left some.
        dry_run: only tell what would go.

    Raises:
        Failure: the kernel does not answer.
    """
    if not dry_run:
        require_net_admin()
    with turn_to_read(state) if dry_run else _turn_if_there_is_one(state):
        done = _change(None, NOTHING_WANTED, None, state, dry_run)
        try:
            found = [each for each in (pins,) if holds(each)] if pins else holding(state)
            if dry_run:
                return _with_bpf(done, found)
            for each in found:
                unpin(each)
            done = _with_bpf(done, found)
            if not pins:
                note((), state)
        except Failure as failure:
            return Done(done.document, failure)
        return done if done.trouble else _recorded(done, None, state)


def status_directly(steering: Path, state: Path) -> Done:
    """Read the kernel back. Where no steering file is, nothing is wanted.

    Raises:
        Failure: the file or the kernel can't be read, or BPF steers.
    """
    unseen = _refuse_beside_bpf(state)
    with turn_to_read(state):
        claims = read_steering(steering) if _is_there(steering) else None
        wanted = want(claims) if claims else NOTHING_WANTED
        plan = plan_for_host(wanted)
        algorithm = claims.default_congestion_control if claims else None
        default = decide_default(algorithm, read_default(), read_memory(state))
    document = status_document(
        claims.generation if claims else None,
        plan,
        wanted,
        default,
        interface_names(),
        bpf_seen=unseen is None,
    )
    return Done(document, unseen)


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError:  # to read it says why
        return True
    return True


def _refuse_beside_bpf(state: Path) -> Failure | None:
    """One owner of a prefix: what a daemon left to BPF, only a daemon changes. Why that can't be told, if so."""
    try:
        found = holding(state)
    except Failure as failure:
        return failure
    if found:
        raise Failure(
            f"this host is steered by BPF ({found[0]}), which a daemon attached and only a daemon changes",
            help="start it: `systemctl start tidegate-agent`; `tidegate-agent flush` removes all without it",
            exit_code=MISSING_PART,
        )
    return None


def _with_bpf(done: Done, pins: Sequence[Path]) -> Done:
    """The report, with the directories whose pins go."""
    document = done.document | {
        "changed": done.document["changed"] or bool(pins),
        "bpf_removed": [str(each) for each in pins],
    }
    return Done(document, done.trouble)


def _change(generation: str | None, wanted: Wanted, default: str | None, state: Path, dry_run: bool) -> Done:
    """The routes first: whatever ails the default or its memory, no connection runs on under claims of the past."""
    plan = plan_for_host(wanted)
    if dry_run:
        after, rejected = plan.after, []
    else:
        rejected = change_routes(plan.changes)
        after = in_order(read_own_routes()) if plan.changes else plan.before
    default_change, trouble = _change_default(default, state, dry_run)
    return Done(
        change_document(generation, plan, after, rejected, default_change, interface_names()), trouble
    )


def _change_default(wanted: str | None, state: Path, dry_run: bool) -> tuple[DefaultChange, Failure | None]:
    found = read_default()
    try:
        change = decide_default(wanted, found, read_memory(state))
        if not dry_run:
            make_default(change, state)
    except Failure as failure:
        return DefaultChange(wanted, found, read_default(), None), failure
    return change, None


def _recorded(done: Done, text: bytes | None, state: Path) -> Done:
    """Where a daemon kept generations, have it go on from here; None is a flush."""
    try:
        ledger = read_ledger(state)
        if not ledger.begun:
            return done
        number: Number = None if text is None else store(text, ledger, state)
        after = confirmed(ledger, number)
        stage_ledger(after, state).commit()
        drop_others(after, state)
    except Failure as failure:
        return Done(done.document, failure)
    return done


@contextmanager
def _turn_if_there_is_one(state: Path) -> Iterator[None]:
    """A turn to write; where it cannot be had, none: what removes everything must not be stopped by a file."""
    with ExitStack() as turn:
        try:
            turn.enter_context(turn_to_write(state))
        except Failure as failure:
            click.echo(f"tidegate-agent: {failure.message}; going on without the lock", err=True)
        yield
