"""The command-line options that the collector's commands share, and what they come to."""

import functools
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import click

from .errors import Failure
from .fleet import read_fleet
from .schemas.rows import BYTES_LENGTH
from .ship.protobuf import PROTOBUF
from .ship.sink import FileSink, Sink, StreamSink
from .ship.text import JSON_LINES
from .sockets.addresses import DEFAULT, FULL, Cut
from .sockets.poll import MAX_SOCKETS
from .sockets.reader import AUTO, CHOICES
from .sockets.rows import Origin

Command = Callable[..., Any]

STANDARD_OUTPUT: Final = Path("-")
_UNITS_NS: Final = {"ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}
_DAY_NS: Final = 86_400 * 10**9


def duration_ns(_context: click.Context, _option: click.Parameter, value: str) -> int:
    """Read `500ms`, `1s` or `2m` as nanoseconds; a day at most.

    Raises:
        click.BadParameter: it is none, or longer.
    """
    matched = re.fullmatch(r"([0-9]{1,9})(ms|s|m)", value)
    if not matched or not int(matched[1]):
        raise click.BadParameter(f"`{value}` is not a duration: write `500ms`, `1s` or `2m`")
    duration = int(matched[1]) * _UNITS_NS[matched[2]]
    if duration > _DAY_NS:
        raise click.BadParameter(f"`{value}` is longer than a day: write `1440m` or less")
    return duration


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

    def origin(self, default_host: str = "") -> Origin:
        """What every row carries, and how its traffic is classified.

        Args:
            default_host: the host where none is named.

        Raises:
            Failure: the fleet can't be read or does not know the POP, a name does not fit into a row, or the
                rows are for others but would not say whose they are.
        """
        host = default_host if self.host is None else self.host
        cut = FULL if self.full_addresses else Cut(self.prefix_v4, self.prefix_v6)
        if self.fleet is None:
            origin = Origin(self.pop or "", host, cut)
        else:
            fleet = read_fleet(self.fleet)
            pop = self.pop or fleet.pop_of(host)
            if pop is None or pop not in fleet.own:
                wrong = f"no POP `{pop}`" if pop else f"no POP lists the host `{host}`"
                known = ", ".join(f"`{name}`" for name in sorted(fleet.own))
                raise Failure(f"{self.fleet}: {wrong}", help=f"name one with `--pop`: {known}")
            origin = Origin(pop, host, cut, fleet.classifier(pop))
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

    def open_sink(self) -> Sink:
        """Where the rows go, opened.

        Raises:
            Failure: it can't be.
        """
        form = JSON_LINES if self.as_json else PROTOBUF
        if self.out == STANDARD_OUTPUT:
            return StreamSink(form)
        sink = FileSink(self.out, form)
        if sink.removed:
            click.echo(f"{self.out}: removed {sink.removed} bytes of a row that was cut at its end", err=True)
        return sink


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """What is read of the kernel; as given on the command line."""

    reader: str
    netns: str | None
    all_states: bool
    max_sockets: int


_PATH: Final = click.Path(path_type=Path)
_V4: Final = click.IntRange(0, 32)
_V6: Final = click.IntRange(0, 128)

_ROW_OPTIONS: Final = (
    click.option(
        "--pop", envvar="TIDEGATE_POP", help="This POP.  [default: the one that lists HOST in FLEET]"
    ),
    click.option("--host", help="This host.  [default: the system's name; of a capture, none]"),
    click.option("--fleet", type=_PATH, help="fleet.json; without it the class of traffic is unknown."),
    click.option("--prefix-v4", type=_V4, default=DEFAULT.ipv4, show_default=True, help="Bits kept of IPv4."),
    click.option("--prefix-v6", type=_V6, default=DEFAULT.ipv6, show_default=True, help="Bits kept of IPv6."),
    click.option("--full-addresses", is_flag=True, help="Keep addresses whole."),
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
    click.option("--netns", help="Network namespace, as `ip netns` names it.  [default: this one]"),
    click.option("--all-states", is_flag=True, help="Also listeners, TIME_WAIT and SYN_RECV."),
    click.option(
        "--max-sockets",
        type=click.IntRange(1),
        default=MAX_SOCKETS,
        show_default=True,
        help="Rows kept of one poll, 506 bytes each; the rest is counted.",
    ),
)


def row_options(command: Command) -> Command:
    """Give a command the argument `rows`, a `RowOptions`."""
    return _gathered(command, "rows", RowOptions, _ROW_OPTIONS)


def kernel_options(command: Command) -> Command:
    """Give a command the argument `source`, a `KernelOptions`."""
    return _gathered(command, "source", KernelOptions, _KERNEL_OPTIONS)


def system_host() -> str:
    """This host's name as the system knows it."""
    return socket.gethostname()


def _gathered(
    command: Command,
    argument: str,
    record: type[RowOptions | KernelOptions],
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
