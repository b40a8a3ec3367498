"""One line of the access log (`collectors/nginx/tidegate_log.conf`) as a transfer. Pure, and trusts nothing."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final

FORMAT: Final = "tidegate-1"

_US: Final = 1_000_000
_SECONDS: Final = re.compile(r"([0-9]{1,10})\.([0-9]{3})", re.ASCII)  # ngx_http_variables.c: "%T.%03M"
_NUMBER: Final = re.compile(r"[0-9]{1,20}", re.ASCII)
_U32: Final = (1 << 32) - 1
_U63: Final = (1 << 63) - 1


class NoTransfer(ValueError):
    """The line is none; its argument says why, in words that do not depend on the line's values."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """What the server logged of one request.

    Attributes:
        finished_at_us: Unix time, microseconds; nginx knows milliseconds.
        remote_address: whole, as an IPv6 address; IPv4 as ::ffff:a.b.c.d.
        remote_port: of the client.
        local_address: whole, in the same form.
        local_port: of the server.
        connection: serial number that the server gave the connection.
        connection_requests: which request of the connection, from 1.
        status: HTTP.
        bytes_sent: to the client, headers included.
        duration_us: from the request's first byte read to the answer's last byte handed to the kernel.
        rtt_us: smoothed, 0 where the server could not ask the kernel; so the next three.
        rttvar_us: mean deviation.
        snd_cwnd: congestion window, segments.
        rcv_space: advertised receive window, bytes.
    """

    finished_at_us: int
    remote_address: int
    remote_port: int
    local_address: int
    local_port: int
    connection: int
    connection_requests: int
    status: int
    bytes_sent: int
    duration_us: int
    rtt_us: int
    rttvar_us: int
    snd_cwnd: int
    rcv_space: int


def parse(line: bytes) -> Transfer:
    """Read one line, without its newline.

    Raises:
        NoTransfer: it is no line of this format, or a value can't be.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise NoTransfer("no JSON") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise NoTransfer(f"not of the format {FORMAT}")
    return Transfer(**{to: _value(found, name, read) for to, (name, read) in _FIELDS.items()})


def _value(found: Mapping[str, Any], name: str, read: Callable[[str], int]) -> int:
    text = found.get(name)
    if not isinstance(text, str):
        raise NoTransfer(f"no {name}")
    try:
        return read(text)
    except ValueError as error:
        raise NoTransfer(f"{name} can't be") from error


def _microseconds(text: str) -> int:
    matched = _SECONDS.fullmatch(text)
    if not matched:
        raise ValueError
    return int(matched[1]) * _US + int(matched[2]) * 1000


def _up_to(highest: int, *, lowest: int = 0) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not _NUMBER.fullmatch(text) or not lowest <= int(text) <= highest:
            raise ValueError
        return int(text)

    return number


def _known_up_to(highest: int) -> Callable[[str], int]:
    """Of the kernel: empty where nginx could not ask it, for instance over a local socket."""
    number = _up_to(highest)
    return lambda text: number(text) if text else 0


def _address(text: str) -> int:
    address: IPv4Address | IPv6Address = ip_address(text)
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise ValueError
        return int(address)
    return 0xFFFF << 32 | int(address)


_FIELDS: Final[Mapping[str, tuple[str, Callable[[str], int]]]] = {
    "finished_at_us": ("msec", _microseconds),
    "remote_address": ("remote_addr", _address),
    "remote_port": ("remote_port", _up_to(65_535)),
    "local_address": ("server_addr", _address),
    "local_port": ("server_port", _up_to(65_535)),
    "connection": ("connection", _up_to(_U63)),
    "connection_requests": ("connection_requests", _up_to(_U32, lowest=1)),
    "status": ("status", _up_to(999)),
    "bytes_sent": ("bytes_sent", _up_to(_U63)),
    "duration_us": ("request_time", _microseconds),
    "rtt_us": ("tcpinfo_rtt", _known_up_to(_U32)),
    "rttvar_us": ("tcpinfo_rttvar", _known_up_to(_U32)),
    "snd_cwnd": ("tcpinfo_snd_cwnd", _known_up_to(_U32)),
    "rcv_space": ("tcpinfo_rcv_space", _known_up_to(_U32)),
}
