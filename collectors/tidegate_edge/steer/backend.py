"""What makes the kernel match: one of two backends, chosen by what the host allows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final, Protocol, runtime_checkable

from tidegate_edge.errors import BAD_INPUT, Failure

from .claims import NotApplied, Settings
from .kernel import Rejected
from .prefix import Prefix
from .routes import Notice

AUTO: Final = "auto"
BPF: Final = "bpf"
ROUTES: Final = "routes"
CHOICES: Final = (AUTO, BPF, ROUTES)


class Held(Protocol):
    """What the kernel holds of ours, read back from it."""

    @property
    def attached(self) -> bool:
        """Whether connections get what `settings` says."""

    @property
    def variant(self) -> str:
        """Which form of the backend runs."""

    @property
    def generation(self) -> str | None:
        """Of the settings; None where the backend cannot keep it in the kernel."""

    @property
    def settings(self) -> Mapping[Prefix, Settings]:
        """By prefix; the longest prefix serves a connection."""

    @property
    def counters(self) -> Mapping[Prefix, object]:
        """A dataclass of counts by prefix; none where the backend has none."""


class Standing(Protocol):
    """The part of `Held` that is cheap to read."""

    @property
    def attached(self) -> bool:
        """As in `Held`."""

    @property
    def generation(self) -> str | None:
        """As in `Held`."""


class Outcome(Protocol):
    """What came of settings that were written, where it is not simply all of them."""

    @property
    def not_applied(self) -> Sequence[NotApplied]:
        """What this host does not allow."""

    @property
    def rejected(self) -> Sequence[Rejected]:
        """What the kernel refused."""

    @property
    def notices(self) -> Sequence[Notice]:
        """What the operator should know, although nothing failed."""


class Given(Protocol):
    """What one open connection was given."""

    @property
    def cookie(self) -> int:
        """The kernel's name of its socket."""

    @property
    def generation(self) -> str:
        """Whose settings it got."""

    @property
    def prefix(self) -> Prefix:
        """The one that matched."""

    @property
    def settings(self) -> Settings:
        """Of that prefix, then."""

    @property
    def window(self) -> str:
        """What became of the initial window."""

    @property
    def algorithm(self) -> str:
        """What became of the algorithm."""

    @property
    def bytes_before(self) -> int:
        """Counted when the algorithm was set."""


class Backend(Protocol):
    """Writes settings into the kernel, and reads them back."""

    @property
    def name(self) -> str:
        """`bpf` or `routes`."""

    @property
    def gates(self) -> bool:
        """Whether an algorithm can apply from so many bytes on."""

    @property
    def follows_routing(self) -> bool:
        """Whether `apply` has to come again where the host's routing changed."""

    def attach(self) -> None:
        """Become effective, or stay so; mends what is missing.

        Raises:
            Failure: this host does not allow it.
        """

    def apply(self, generation: str, settings: Mapping[Prefix, Settings]) -> Outcome | None:
        """Make the kernel hold these settings and no other; None: it holds them all.

        Raises:
            Failure: the kernel does not take them; it keeps the last ones.
        """

    def read(self) -> Held:
        """Read the kernel back.

        Raises:
            Failure: the kernel does not answer.
        """

    def remove(self) -> None:
        """Leave nothing of ours in the kernel.

        Raises:
            Failure: the kernel refuses.
        """


@runtime_checkable
class Frozen(Protocol):
    """A backend whose settings nobody can change without it: to see that they stand is to know them."""

    def standing(self) -> Standing:
        """Whether what was applied is still in use, without reading all of it.

        Raises:
            Failure: the kernel does not answer.
        """


@runtime_checkable
class Witness(Protocol):
    """A backend that remembers what it gave to each open connection."""

    def why(self, remote: IPv4Address | IPv6Address) -> Sequence[Given]:
        """What the connections of a peer were given.

        Raises:
            Failure: the kernel does not answer.
        """


@dataclass(frozen=True, slots=True)
class Choice:
    """A backend that is attached.

    Attributes:
        backend: the one that steers.
        other: the one that must hold nothing, so that no prefix is steered twice; None where only one was made.
        why: why it is this one, for people.
    """

    backend: Backend
    other: Backend | None
    why: str


Make = Callable[[], Backend]


def choose(asked: str, makes: Mapping[str, Make]) -> Choice:
    """Attach the backend asked for; `auto` takes BPF where it can be attached, else routes.

    Args:
        asked: `auto`, `bpf` or `routes`.
        makes: how each backend is made, by its name.

    Raises:
        Failure: there is no such backend, or this host allows none.
    """
    if asked not in CHOICES:
        raise Failure(
            f"no backend is called `{asked}`", help=f"one of {', '.join(CHOICES)}", exit_code=BAD_INPUT
        )
    bpf, routes = makes[BPF](), makes[ROUTES]()
    if asked == ROUTES:
        routes.attach()
        return Choice(routes, bpf, "asked for")
    try:
        bpf.attach()
    except Failure as failure:
        if asked == BPF:
            raise
        routes.attach()
        return Choice(routes, bpf, f"bpf cannot be had here: {failure.message}")
    return Choice(bpf, routes, "asked for" if asked == BPF else "this host allows it")
