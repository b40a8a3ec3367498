"""`tidegate-agent run`: puts the daemon together, and takes it apart."""

import grp
import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from tidegate_edge.errors import BAD_INPUT, Failure
from tidegate_edge.steer.backend import BPF, ROUTES, Choice, Make, choose
from tidegate_edge.steer.bpf import BpfBackend
from tidegate_edge.steer.kernel import require_net_admin
from tidegate_edge.steer.route_backend import RouteBackend
from tidegate_edge.steer.turn import turn_to_write
from tidegate_edge.steer.watch import Watch

from .answers import Told
from .daemon import Daemon
from .learning import Learning
from .lifecycle import Lifecycle
from .listener import listen
from .peer import Access
from .pinned import holds, note, noted, unpin
from .printing import tell
from .reconcile import Reconciler
from .starving import Starving
from .steering_file import SteeringFile

KEEP: Final = "keep"
REMOVE: Final = "remove"
NOTHING: Final = "nothing"
# For a command that is at it; another daemon does not go away.
PATIENCE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What a daemon is started with.

    Attributes:
        steering: the file that Ansible writes; `status` compares.
        state: directory of what must outlive the daemon.
        socket: where requests come in.
        group: name of the group that may ask what changes nothing; None: that of the process.
        backend: `auto`, `bpf` or `routes`.
        cgroup: where BPF is attached; None: the root of the hierarchy.
        pins: where BPF's objects are pinned.
        per_request: whether BPF counts anew for each request of a connection.
        on_stop: `keep` or `remove` what the kernel holds.
        when_starved: algorithm that takes BBR's place while the host is short of CPU, or `nothing`.
        starved_every: from one look at the host's health to the next, nanoseconds.
    """

    steering: Path
    state: Path
    socket: Path
    group: str | None
    backend: str
    cgroup: Path | None
    pins: Path
    per_request: bool
    on_stop: str
    when_starved: str
    starved_every: int


def run_daemon(settings: Settings) -> None:
    """Run until SIGTERM; the kernel then keeps what it holds, or is as before.

    Raises:
        Failure: the daemon can't start; the kernel keeps what it holds.
    """
    require_net_admin()
    access = Access(os.geteuid(), _group(settings.group))
    with ExitStack() as ends:
        # For as long as it runs: two owners would undo each other's work.
        ends.enter_context(turn_to_write(settings.state, PATIENCE_S))
        earlier = _noted(settings.state)
        if settings.backend != ROUTES:  # before anything is pinned: what is there is then always found
            _note((*earlier, settings.pins), settings.state)
        choice = choose(settings.backend, backends(settings))
        click.echo(f"tidegate-agent: steers by {choice.backend.name}: {choice.why}", err=True)
        watch = ends.enter_context(closing(Watch())) if choice.backend.follows_routing else None
        reconciler = Reconciler(choice, settings.state)
        lifecycle = Lifecycle(reconciler, settings.state)
        learning = ends.enter_context(closing(Learning(reconciler, settings.state)))
        _resume(lifecycle)
        _leave_to(choice)
        _leave_pins(earlier, settings.pins, settings.state)
        listener = ends.enter_context(listen(settings.socket, access.group))
        ends.callback(settings.socket.unlink, missing_ok=True)
        told = Told(
            lifecycle=lifecycle,
            learning=learning,
            starving=_starving(settings, reconciler),
            steering=SteeringFile(settings.steering),
            state=settings.state,
            pins=settings.pins,
        )
        Daemon(told, access, listener, watch).run()
        _stop(lifecycle, settings.on_stop)


def backends(settings: Settings) -> dict[str, Make]:
    """How each backend is made."""
    return {
        BPF: lambda: BpfBackend(settings.cgroup, settings.pins, settings.per_request),
        ROUTES: RouteBackend,
    }


def _starving(settings: Settings, reconciler: Reconciler) -> Starving:
    instead = None if settings.when_starved == NOTHING else settings.when_starved
    return Starving(reconciler, instead, settings.starved_every)


def _resume(lifecycle: Lifecycle) -> None:
    """Go on from the disk; whatever ails it, the daemon runs, says so, and the kernel keeps what it holds."""
    try:
        lifecycle.resume()
    except Failure as failure:
        tell(failure)
        lifecycle.trouble = failure.message


def _leave_to(choice: Choice) -> None:
    """Have the backend that does not steer hold nothing; only after the one that steers holds all."""
    if choice.other is None:
        return
    try:
        choice.other.remove()
    except Failure as failure:
        tell(failure)


def _noted(state: Path) -> tuple[Path, ...]:
    try:
        return noted(state)
    except Failure as failure:
        tell(failure)
        return ()


def _leave_pins(earlier: Sequence[Path], here: Path, state: Path) -> None:
    """Have nothing pinned but by this daemon; what can't be removed stays noted."""
    holding = []
    for pins in dict.fromkeys((*earlier, here)):
        try:
            if pins != here:
                unpin(pins)
            if holds(pins):
                holding.append(pins)
        except Failure as failure:
            tell(failure)
            holding.append(pins)
    _note(holding, state)


def _note(directories: Iterable[Path], state: Path) -> None:
    try:
        note(directories, state)
    except Failure as failure:
        tell(failure)


def _stop(lifecycle: Lifecycle, on_stop: str) -> None:
    # Nobody would be there to take it back.
    if lifecycle.due_ns is not None:
        lifecycle.roll_back()
    if on_stop == REMOVE:
        lifecycle.reconciler.leave()


def _group(name: str | None) -> int:
    if name is None:
        return os.getegid()
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError as error:
        raise Failure(
            f"there is no group `{name}`", help=f"make it: `groupadd --system {name}`", exit_code=BAD_INPUT
        ) from error
