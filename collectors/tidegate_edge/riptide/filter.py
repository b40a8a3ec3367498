"""Prefixes to the bytecode by which the kernel selects sockets (INET_DIAG_REQ_BYTECODE).

Commands are conditional jumps forward (include/uapi/linux/inet_diag.h, struct inet_diag_bc_op); a jump to the end
takes the socket, one behind the end passes it over (net/ipv4/inet_diag.c, inet_diag_bc_run). The prefixes of a
family form a binary tree, in which a prefix that covers several stands before them: a socket costs the depth of the
tree, not as many comparisons as there are prefixes. A condition on IPv4 also holds for IPv4 on a dual-stack socket.
"""

import socket
import struct
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from itertools import accumulate, pairwise
from typing import Final, TypeAlias

from tidegate_edge.steer.prefix import Prefix, order

INET_DIAG_REQ_BYTECODE: Final = 1
_JUMP: Final = 1  # INET_DIAG_BC_JMP
_REMOTE: Final = 8  # INET_DIAG_BC_D_COND

# The kernel's check of a program takes time with the square of its length: 2 ms for this many prefixes.
MAX_PREFIXES: Final = 512

_COMMAND: Final = struct.Struct(
    "=BBH"
)  # code, offset where it holds, offset where not: both from its own begin
_HOST: Final = struct.Struct("=BBxxi")  # struct inet_diag_hostcond: family, prefix length, port; -1 is any
_ATTRIBUTE: Final = struct.Struct("=HH")
_FAMILIES: Final = {4: socket.AF_INET, 6: socket.AF_INET6}

_Command: TypeAlias = tuple[Prefix | None, int]
"""A prefix and the command that follows where it does not match; without a prefix, the socket is taken."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which sockets the kernel reports.

    Attributes:
        attribute: INET_DIAG_REQ_BYTECODE, to follow a request; empty: every socket.
        exact: only sockets of the prefixes are reported; where not, some prefixes were widened.
    """

    attribute: bytes
    exact: bool


def select_remote(prefixes: Collection[Prefix]) -> Filter:
    """A filter for sockets whose remote address is in one of the prefixes.

    Beyond `MAX_PREFIXES` of a family, after those inside others and halves of one are merged, those that lie
    nearest to each other are replaced by what covers them, and the reader must look again.
    """
    commands: list[_Command] = []
    exact = True
    for version in _FAMILIES:
        wanted = _collapsed(prefix for prefix in prefixes if prefix.version == version)
        narrowed = _widened(wanted, MAX_PREFIXES)
        exact &= narrowed == wanted
        if narrowed:
            _branch(narrowed, commands)
    program = _assemble(commands)
    return Filter(_ATTRIBUTE.pack(_ATTRIBUTE.size + len(program), INET_DIAG_REQ_BYTECODE) + program, exact)


def _collapsed(prefixes: Iterable[Prefix]) -> list[Prefix]:
    found: list[Prefix] = []
    found.extend(collapse_addresses(prefixes))  # type: ignore[type-var]  # one family, which mypy cannot see
    return sorted(found, key=order)


def _widened(prefixes: Sequence[Prefix], most: int) -> list[Prefix]:
    """At most so many prefixes that hold all of these; of disjoint ones in order."""
    surplus = len(prefixes) - most
    if surplus <= 0:
        return list(prefixes)
    shared = [_cover(left, right).prefixlen for left, right in pairwise(prefixes)]
    bound = sorted(shared, reverse=True)[surplus - 1]
    runs = [[prefixes[0]]]
    for bits, prefix in zip(shared, prefixes[1:], strict=True):
        if bits >= bound:
            runs[-1].append(prefix)
        else:
            runs.append([prefix])
    return [_cover(run[0], run[-1]) for run in runs]


def _cover(first: Prefix, last: Prefix) -> Prefix:
    """The longest prefix that holds both."""
    differ = int(first.network_address) ^ int(last.network_address)
    length = min(first.prefixlen, last.prefixlen, first.max_prefixlen - differ.bit_length())
    return first.supernet(new_prefix=length)


def _branch(prefixes: Sequence[Prefix], commands: list[_Command]) -> None:
    if len(prefixes) == 1:
        commands += [(prefixes[0], len(commands) + 2), (None, 0)]
        return
    cover = _cover(prefixes[0], prefixes[-1])
    middle = int(cover.network_address) | 1 << cover.max_prefixlen - cover.prefixlen - 1
    split = bisect_left(prefixes, middle, key=lambda prefix: int(prefix.network_address))
    at = len(commands)
    commands.append((cover, at))
    _branch(prefixes[:split], commands)
    _branch(prefixes[split:], commands)
    commands[at] = (cover, len(commands))


def _assemble(commands: Sequence[_Command]) -> bytes:
    lengths = [_length(prefix) for prefix, _ in commands]
    starts = list(
        accumulate(lengths, initial=0)
    )  # and that of the last command, which passes the socket over
    end = starts[-1] + _COMMAND.size
    code = [
        _condition(prefix, starts[otherwise] - at)
        if prefix
        else _COMMAND.pack(_JUMP, _COMMAND.size, end - at)
        for (prefix, otherwise), at in zip(commands, starts, strict=False)
    ]
    return b"".join(code) + _COMMAND.pack(_JUMP, _COMMAND.size, 2 * _COMMAND.size)


def _length(prefix: Prefix | None) -> int:
    return _COMMAND.size + (_HOST.size + prefix.max_prefixlen // 8 if prefix else 0)


def _condition(prefix: IPv4Network | IPv6Network, otherwise: int) -> bytes:
    host = _HOST.pack(_FAMILIES[prefix.version], prefix.prefixlen, -1) + prefix.network_address.packed
    return _COMMAND.pack(_REMOTE, _COMMAND.size + len(host), otherwise) + host
