"""The command-line options that the collector's commands share, and what they come to."""

import functools
import socket
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import click

from .errors import Failure
from .fleet import read_fleet
from .keyfile import read_key
from .option_types import address_and_port, duration_ns, duration_or_none_ns, networks, one_in, ports
from .schedule import Pace
from .schemas.rows import BYTES_LENGTH
from .ship.rotation import RotatedFile
from .ship.sink import FileSink, Sink, StreamSink
from .sockets.addresses import DEFAULT, FULL, Cut
from .sockets.netlink import CONNECTED, EVERY
from .sockets.poll import MAX_SOCKETS
from .sockets.pseudonym import Pseudonyms
from .sockets.reader import AUTO, CHOICES
from .sockets.rows import Origin
from .sockets.selection import EVERYTHING, Network, Selection
from .sources import Wanted
from .streams import SOCKET_STREAM, Stream

Command = Callable[..., Any]

STANDARD_OUTPUT: Final = Path("-")


@dataclass(frozen=True, slots=True)
class RowOptions:
    """Whose rows these are, what is kept of addresses, and where the rows go; as given on the command line."""

    pop: str | None
    host: str | None
    fleet: Path | None
    prefix_v4: int
    prefix_v6: int
    full_addresses: bool
    out: Path
    as_json: bool
    hash_key_file: Path | None = None

    def origin(self, default_host: str = "", selection: Selection = EVERYTHING) -> Origin:
        """What every row carries, and how its traffic is classified.

        Args:
            default_host: the host where none is named.
            selection: of sockets.

        Raises:
            Failure: the fleet or the key can't be read, the fleet does not know the POP, a name does not fit into
                a row, or the rows are for others but would not say whose they are.
        """
        host = default_host if self.host is None else self.host
        cut = FULL if self.full_addresses else Cut(self.prefix_v4, self.prefix_v6)
        if self.fleet is None:
            pop, classifier = self.pop or "", None
        else:
            fleet = read_fleet(self.fleet)
            pop = self.pop or fleet.pop_of(host) or ""
            if pop not in fleet.own:
                wrong = f"no POP `{pop}`" if pop else f"no POP lists the host `{host}`"
                known = ", ".join(f"`{name}`" for name in sorted(fleet.own))
                raise Failure(f"{self.fleet}: {wrong}", help=f"name one with `--pop`: {known}")
            classifier = fleet.classifier(pop)
        pseudonyms = None if self.hash_key_file is None else Pseudonyms(read_key(self.hash_key_file))
        origin = Origin(pop, host, cut, classifier, selection, pseudonyms)
        for field, name in (("pop", origin.pop), ("host", origin.host)):
            if len(name.encode()) > BYTES_LENGTH[field] or "\0" in name:
                raise Failure(
                    f"--{field} `{name}` does not fit into a row: it has {BYTES_LENGTH[field]} bytes"
                )
            if not name and not self.as_json:
                raise Failure(
                    f"these rows would not say of which {field} they are", help=f"name it with `--{field}`"
                )
        return origin

    def open_sink(self, stream: Stream = SOCKET_STREAM, out_mib: int | None = None) -> Sink:
        """Where rows of a kind go that go to no broker, opened.

        Args:
            stream: the kind.
            out_mib: bound of the file, MiB; beyond it the file is put aside, over the one before.

        Raises:
            Failure: it can't be.
        """
        form = stream.json if self.as_json else stream.protobuf
        if self.out == STANDARD_OUTPUT:
            return StreamSink(form)
        if out_mib is not None:
            return RotatedFile(self.out, form, out_mib << 20, _tell)
        sink = FileSink(self.out, form)
        if sink.removed:
            _tell(f"{self.out}: removed {sink.removed} bytes of a row that was cut at its end")
        return sink


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """What is read of the kernel; as given on the command line."""

    reader: str
    netns: str | None
    all_states: bool
    max_sockets: int
    sample: int
    exclude_port: tuple[int, ...]
    exclude_prefix: tuple[Network, ...]

    def wanted(self) -> Wanted:
        """What is read of each namespace."""
        states = EVERY if self.all_states else CONNECTED
        return Wanted(self.reader, self.netns, states, self.max_sockets)

    def selection(self) -> Selection:
        """Which of the sockets become rows."""
        return Selection(self.sample, self.exclude_port, self.exclude_prefix)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a collector that goes on works; as given on the command line."""

    interval: int
    jitter: int
    max_cpu: float
    count: int | None
    metrics: tuple[str, int] | None
    out_mib: int | None

    def pace(self) -> Pace:
        """How often to poll.

        Raises:
            Failure: the jitter is more than half the interval.
        """
        if self.jitter > self.interval // 2:
            raise Failure(
                "--jitter is more than half the interval: polls would come in each other's way",
                help="lower it, or poll less often",
            )
        return Pace(self.interval, self.jitter, self.max_cpu / 100)


_PATH: Final = click.Path(path_type=Path)
_V4: Final = click.IntRange(0, 32)
_V6: Final = click.IntRange(0, 128)

METRICS: Final = click.option(
    "--metrics",
    metavar="ADDRESS:PORT",
    callback=address_and_port,
    help="Serve Prometheus metrics there; `:9809` is on the loopback.  [default: nowhere]",
)
OUT_MIB: Final = click.option(
    "--out-mib",
    type=click.IntRange(1, 1 << 20),
    default=4096,
    show_default=True,
    help="Bound of the file of --out; when it is full it becomes FILE.1, over the one before.",
)

_ROW_OPTIONS: Final = (
    click.option(
        "--pop", envvar="TIDEGATE_POP", help="This POP.  [default: the one that lists HOST in FLEET]"
    ),
    click.option("--host", help="This host.  [default: the system's name; of a capture, none]"),
    click.option("--fleet", type=_PATH, help="fleet.json; without it the class of traffic is unknown."),
    click.option("--prefix-v4", type=_V4, default=DEFAULT.ipv4, show_default=True, help="Bits kept of IPv4."),
    click.option("--prefix-v6", type=_V6, default=DEFAULT.ipv6, show_default=True, help="Bits kept of IPv6."),
    click.option("--full-addresses", is_flag=True, help="Keep addresses whole."),
    click.option(
        "--hash-key-file",
        type=_PATH,
        help="Add a keyed hash of the whole remote address; the key is 32 to 128 hexadecimal digits.",
    ),
    click.option("--out", type=_PATH, default=STANDARD_OUTPUT, show_default=True, help="File to append to."),
    click.option("--json", "as_json", is_flag=True, help="JSON lines for people instead of protobuf."),
)
_KERNEL_OPTIONS: Final = (
    click.option(
        "--reader",
        type=click.Choice(CHOICES),
        default=AUTO,
        show_default=True,
        help="How: by a BPF iterator, by netlink, or by the first of them that works here.",
    ),
    click.option(
        "--netns",
        metavar="NAME|all",
        help="Network namespace, as `ip netns` names it, or every one that there is.  [default: this one]",
    ),
    click.option("--all-states", is_flag=True, help="Also listeners, TIME_WAIT and SYN_RECV."),
    click.option(
        "--max-sockets",
        type=click.IntRange(1),
        default=MAX_SOCKETS,
        show_default=True,
        help="Rows kept of one poll of a namespace, 506 bytes each; the rest is counted.",
    ),
    click.option(
        "--sample",
        metavar="1/N",
        callback=one_in,
        default="1/1",
        show_default=True,
        help="Read one socket in N, the same ones at every poll.",
    ),
    click.option(
        "--exclude-port",
        multiple=True,
        type=click.IntRange(0, 0xFFFF),
        callback=ports,
        help="Pass over sockets with this port on either side. Repeatable.",
    ),
    click.option(
        "--exclude-prefix",
        multiple=True,
        metavar="PREFIX",
        callback=networks,
        help="Pass over sockets with a remote address in it. Repeatable.",
    ),
)
_RUN_OPTIONS: Final = (
    click.option(
        "--interval", callback=duration_ns, default="1s", show_default=True, help="Between two polls."
    ),
    click.option(
        "--jitter",
        callback=duration_or_none_ns,
        default="0",
        show_default=True,
        help="Poll up to so much later, at random: at most half the interval.",
    ),
    click.option(
        "--max-cpu",
        type=click.FloatRange(0.1, 100),
        default=100,
        show_default=True,
        help="Percent of one processor that polls may take; above it, polls are left out and counted.",
    ),
    click.option(
        "--count", type=click.IntRange(1), help="End after so many polls.  [default: at SIGTERM or SIGINT]"
    ),
    METRICS,
    OUT_MIB,
)


def row_options(command: Command) -> Command:
    """Give a command the argument `rows`, a `RowOptions`."""
    return _gathered(command, "rows", RowOptions, _ROW_OPTIONS)


def kernel_options(command: Command) -> Command:
    """Give a command the argument `source`, a `KernelOptions`."""
    return _gathered(command, "source", KernelOptions, _KERNEL_OPTIONS)


def run_options(command: Command) -> Command:
    """Give a command the argument `how`, a `RunOptions`."""
    return _gathered(command, "how", RunOptions, _RUN_OPTIONS)


def system_host() -> str:
    """This host's name as the system knows it."""
    return socket.gethostname()


def _gathered(
    command: Command,
    argument: str,
    record: type[RowOptions | KernelOptions | RunOptions],
    options: tuple[Callable[[Command], Command], ...],
) -> Command:
    names = [field.name for field in fields(record)]

    @functools.wraps(command)
    def with_record(**given: Any) -> Any:  # noqa: ANN401 — click hands over what it has converted
        gathered = record(**{name: given.pop(name) for name in names})
        return command(**{argument: gathered}, **given)

    decorated: Command = with_record
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def _tell(line: str) -> None:
    click.echo(line, err=True)
