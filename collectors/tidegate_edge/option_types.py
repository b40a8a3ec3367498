"""What the command line takes as text and hands on as a value."""

import re
from ipaddress import ip_address, ip_network
from typing import Final, TypeVar

import click

from .sockets.selection import Network

Value = TypeVar("Value")

_UNITS_NS: Final = {"ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}
_DAY_NS: Final = 86_400 * 10**9

# A list that is longer costs a comparison of all sockets each.
MOST_EXCLUDED: Final = 64


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


def duration_or_none_ns(context: click.Context, option: click.Parameter, value: str) -> int:
    """Read a duration, or `0` for none, as nanoseconds.

    Raises:
        click.BadParameter: it is neither.
    """
    return 0 if value == "0" else duration_ns(context, option, value)


def one_in(_context: click.Context, _option: click.Parameter, value: str) -> int:
    """Read `1/100` as 100; a million at most.

    Raises:
        click.BadParameter: it is no such fraction.
    """
    matched = re.fullmatch(r"1/([1-9][0-9]{0,6})", value)
    if not matched or int(matched[1]) > 10**6:
        raise click.BadParameter(f"`{value}` is not a sample: write `1/10` for one socket in ten")
    return int(matched[1])


def networks(
    _context: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> tuple[Network, ...]:
    """Read prefixes of both families, 64 at most.

    Raises:
        click.BadParameter: one is none, or has host bits.
    """
    return tuple(_network(value) for value in _few(values))


def ports(_context: click.Context, _option: click.Parameter, values: tuple[int, ...]) -> tuple[int, ...]:
    """Take 64 ports at most.

    Raises:
        click.BadParameter: there are more.
    """
    return _few(values)


def address_and_port(
    _context: click.Context, _option: click.Parameter, value: str | None
) -> tuple[str, int] | None:
    """Read `127.0.0.1:9809` or `[::1]:9809`; a port alone is on the loopback.

    Raises:
        click.BadParameter: it is no address with a port.
    """
    if value is None:
        return None
    host, _, port = value.rpartition(":")
    try:
        address = ip_address(host.strip("[]") or "127.0.0.1")
        number = int(port) if re.fullmatch(r"[0-9]{1,5}", port) else -1
    except ValueError:
        number = -1
    if not 0 <= number <= 0xFFFF:
        raise click.BadParameter(f"`{value}` is no address and port: write `127.0.0.1:9809` or `[::1]:9809`")
    return str(address), number


def _network(value: str) -> Network:
    try:
        return ip_network(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _few(values: tuple[Value, ...]) -> tuple[Value, ...]:
    if len(values) > MOST_EXCLUDED:
        raise click.BadParameter(f"{len(values)} of them: {MOST_EXCLUDED} are the most")
    return values
