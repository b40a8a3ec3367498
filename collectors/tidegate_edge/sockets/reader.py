"""Which reader a collector uses: the one asked for, or the best that this host allows."""

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from tidegate_edge.errors import BAD_INPUT, Failure
from tidegate_edge.libbpf.library import Unavailable

from .arena import Arena
from .iterator import BpfReader
from .netlink import CONNECTED, SocketDiag
from .part import Given, Part
from .poll import MAX_SOCKETS, poll
from .rows import Origin

AUTO: Final = "auto"
BPF: Final = "bpf"
NETLINK: Final = "netlink"
CHOICES: Final = (AUTO, BPF, NETLINK)

Tell = Callable[[str], None]
"""Takes a line for people."""

_NOT_IN_AN_ITERATOR: Final = "a BPF iterator has no rows for listeners, TIME_WAIT and SYN_RECV"


class Reader(Protocol):
    """What reads the sockets of one network namespace."""

    @property
    def name(self) -> str:
        """Of the reader in use: `bpf` or `netlink`."""

    def poll(
        self, origin: Origin, arena: Arena, *, states: int = CONNECTED, max_sockets: int = MAX_SOCKETS
    ) -> Iterator[Part]:
        """All sockets as rows, part by part; the rows of one lie in the arena until the next is asked for."""

    def close(self) -> None:
        """Give back what the kernel holds for it."""


class NetlinkReader:
    """Reads by NETLINK_SOCK_DIAG, which any process may ask.

    Args:
        netns: name of the namespace as `ip netns` knows it, or None for that of this process.

    Raises:
        Failure: there is no such namespace, or the host can't be read.
    """

    name: Final = NETLINK

    def __init__(self, netns: str | None = None) -> None:
        self._diag = SocketDiag(netns)

    def poll(
        self,
        origin: Origin,
        arena: Arena,
        *,
        states: int = CONNECTED,
        max_sockets: int = MAX_SOCKETS,
        given: Given | None = None,
    ) -> Iterator[Part]:
        """As `tidegate_edge.sockets.poll.poll`."""
        return poll(self._diag, origin, arena, states=states, max_sockets=max_sockets, given=given)

    def close(self) -> None:
        """Close the netlink socket."""
        self._diag.close()


class BestReader:
    """Reads by BPF while the host allows it, from then on by netlink.

    Args:
        netns: name of the namespace as `ip netns` knows it, or None for that of this process.
        tell: is told once why it is not BPF.

    Raises:
        Failure: there is no such namespace, or the host can't be read in either way.
    """

    def __init__(self, netns: str | None, tell: Tell) -> None:
        self._netns = netns
        self._tell = tell
        try:
            self._reader: Reader = BpfReader(netns)
        except Unavailable as why:
            self._reader = self._second_best(why)

    @property
    def name(self) -> str:
        """Of the reader in use."""
        return self._reader.name

    def poll(
        self, origin: Origin, arena: Arena, *, states: int = CONNECTED, max_sockets: int = MAX_SOCKETS
    ) -> Iterator[Part]:
        """As the reader in use does it; what BPF can't do of a poll is done by netlink, and no socket given twice."""
        given = Given()
        try:
            for part in self._reader.poll(origin, arena, states=states, max_sockets=max_sockets):
                given.add(part.rows)
                yield part
        except Unavailable as why:
            self._reader.close()
            self._reader = second = self._second_best(why)
        else:
            return
        yield from second.poll(origin, arena, states=states, max_sockets=max_sockets, given=given)

    def close(self) -> None:
        """Close the reader in use."""
        self._reader.close()

    def _second_best(self, why: Unavailable) -> NetlinkReader:
        self._tell(f"reader netlink: {why.message}")
        return NetlinkReader(self._netns)


def open_reader(choice: str, netns: str | None, *, states: int, tell: Tell) -> Reader:
    """The reader for a namespace.

    Args:
        choice: one of `CHOICES`.
        netns: name of the namespace as `ip netns` knows it, or None for that of this process.
        states: a bit for each TCP state that will be asked for.
        tell: is told why an automatic choice is not BPF, unless it is for these states.

    Raises:
        Failure: the reader asked for can't be had (exit code 3), can't see these states, or there is no such
            namespace.
    """
    beyond = states & ~CONNECTED
    if choice == BPF:
        if beyond:
            raise Failure(_NOT_IN_AN_ITERATOR, help="ask for `--reader netlink`", exit_code=BAD_INPUT)
        return BpfReader(netns)
    if choice == AUTO and not beyond:
        return BestReader(netns, tell)
    return NetlinkReader(netns)
