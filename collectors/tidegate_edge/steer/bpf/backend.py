"""The BPF backend: attach, apply, read back, remove. Only wires."""

import errno
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tidegate_edge.libbpf import descriptors
from tidegate_edge.libbpf.capability import may_use_bpf
from tidegate_edge.libbpf.library import library
from tidegate_edge.steer.claims import Settings
from tidegate_edge.steer.prefix import Prefix

from . import policy
from .cgroup import open_cgroup, require_bpf_files, root_of_cgroups
from .held import NEEDS, Address, Held, Standing, Steered, Unavailable
from .pins import Pins
from .program import MAPS, Tell, load_best, put_in_place
from .standing import look, opened_trie
from .steered import read_steered

PINS: Final = Path("/sys/fs/bpf/tidegate")


def _tell_nobody(line: str) -> None:
    del line


class BpfBackend:
    """Steers new connections by a BPF program that stays in the kernel, whatever becomes of this process.

    All that is known of it is read from the kernel's pinned objects. One process at a time changes them; any reads.

    Args:
        cgroup: whose sockets are steered, with those of the cgroups below; None: the root of the hierarchy. A
            listener keeps the cgroup in which it was made.
        pins: a directory in a BPF file system, made where it is not there. It lies in a directory that is.
        per_request: count a connection's bytes from each request on (HTTP/1.1) instead of from its start.
        tell: is told where the kernel takes a lesser variant of the program, and why.
    """

    name: Final = "bpf"
    gates: Final = True
    follows_routing: Final = False

    def __init__(
        self,
        cgroup: Path | None = None,
        pins: Path = PINS,
        per_request: bool = False,
        *,
        tell: Tell = _tell_nobody,
    ) -> None:
        self._cgroup = cgroup
        self._pins = Pins(pins)
        self._per_request = per_request
        self._tell = tell

    def attach(self) -> None:
        """Load the program and put it in its place; where one of ours is, in that one's, without a gap.

        The settings in use, the counters and what is known of open connections stay, each unless its pin is gone or
        of another layout: without the settings, connections get none until `apply`.

        Raises:
            Unavailable: this host can't, and why; what was in place still is.
        """
        with _told("the program can't be attached"), ExitStack() as stack:
            cgroup = stack.enter_context(descriptors.closing(open_cgroup(self._cgroup_path())))
            require_bpf_files(self._pins.directory)
            self._pins.directory.mkdir(mode=0o700, exist_ok=True)
            reuse = self._reusable(stack)
            loaded, variant = load_best(reuse, self._tell)
            stack.callback(loaded.close)
            for pin, name in MAPS.items():
                if name not in reuse:
                    descriptors.pin(loaded.map_fd(name), self._pins.path(pin))
            program = loaded.program_fd(f"steer_{variant}")
            put_in_place(program, cgroup, self._pins)
            descriptors.pin(program, self._pins.path("program"))

    def apply(self, generation: str, settings: Mapping[Prefix, Settings]) -> None:
        """Make new connections get these settings, all at once; those open keep what they have.

        Args:
            generation: its name, 1 to 16 ASCII characters.
            settings: by prefix, nested claims already merged.

        Raises:
            Unavailable: nothing is attached, or the kernel refuses; the settings before stay in use.
            Failure: settings that can't be told to the kernel; those before stay in use.
        """
        with (
            _told("the settings can't be applied"),
            self._pins.opened("policy") as slot,
            self._pins.opened("counters") as counters,
        ):
            if slot is None or counters is None:
                raise Unavailable(f"nothing is attached: no maps are pinned in {self._pins.directory}", NEEDS)
            made = policy.make_trie(generation, settings, per_request=self._per_request)
            with descriptors.closing(made) as trie:
                # Pinned before it is used, so that what is in use can always be read back.
                beside = descriptors.pin_aside(trie, self._pins.path("trie"))
                policy.swap_in(slot, trie)
                beside.rename(self._pins.path("trie"))
            policy.forget_others(counters, settings)

    def standing(self) -> Standing:
        """As `read`, without settings and counters: a few system calls, whatever the number of prefixes.

        Settings in use are frozen: while `generation` is the one applied and nothing is missing, they are what was
        applied.

        Raises:
            Unavailable: what is pinned can't be read.
        """
        with _told("what is pinned can't be read"):
            return look(self._pins, self._cgroup_path())

    def read(self) -> Held:
        """What the kernel holds.

        Raises:
            Unavailable: what is pinned can't be read.
        """
        standing = self.standing()
        with (
            _told("what is pinned can't be read"),
            self._pins.opened("policy") as slot,
            opened_trie(self._pins, slot) as trie,
            self._pins.opened("counters") as counters,
        ):
            # Of the very trie that is read, should another have come since.
            generation = None if trie is None else policy.read_generation(trie)
            settings = {} if trie is None else policy.read_settings(trie)
            counted = {} if counters is None else policy.read_counters(counters, settings)
        return Held(standing.attached, standing.variant, generation, settings, counted, standing.missing)

    def why(
        self,
        remote: Address | None = None,
        remote_port: int | None = None,
        local_port: int | None = None,
        *,
        cookie: int | None = None,
    ) -> tuple[Steered, ...]:
        """What open connections were given, in all network namespaces; those that match no prefix are left out.

        Args:
            remote: only with this peer.
            remote_port: only with this port of the peer's.
            local_port: only with this port of the host's.
            cookie: only the socket with this cookie, as `ss -e` shows it.

        Raises:
            Unavailable: nothing is attached, or this host can't run the iterator.
        """
        asked = {"remote_port": remote_port, "local_port": local_port, "cookie": cookie}
        wanted = {name: value for name, value in asked.items() if value is not None}
        with _told("the connections can't be read"), self._pins.opened("connections") as connections:
            if connections is None:
                raise Unavailable(f"nothing is attached: no maps are pinned in {self._pins.directory}", NEEDS)
            return tuple(
                each
                for each in read_steered(connections, remote)
                if all(getattr(each, name) == value for name, value in wanted.items())
            )

    def remove(self) -> None:
        """Leave nothing of ours in the kernel, also where half of it is gone; open connections keep what they have.

        Raises:
            Unavailable: the kernel refuses.
        """
        if not self._pins.directory.is_dir():
            return
        with _told("it can't be removed"):
            with self._pins.opened("link") as link:
                if link is not None:
                    descriptors.detach(link)
            self._pins.clear()

    def _cgroup_path(self) -> Path:
        return self._cgroup or root_of_cgroups()

    def _reusable(self, stack: ExitStack) -> dict[str, int]:
        """The pinned maps that a new program can use, by name."""
        found = {name: stack.enter_context(self._pins.opened(pin)) for pin, name in MAPS.items()}
        return {
            name: descriptor
            for name, descriptor in found.items()
            if descriptor is not None and descriptors.map_info(descriptor).name == name
        }


@contextmanager
def _told(what: str) -> Iterator[None]:
    """An error of the kernel's becomes a failure in words, and so does a library that is not there."""
    library(NEEDS)
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPERM and not may_use_bpf():
            raise Unavailable(f"it takes {NEEDS.capabilities}, which this process lacks", NEEDS) from error
        raise Unavailable(f"{what}: {error.strerror}", NEEDS) from error
