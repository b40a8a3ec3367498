"""Which routes of a long table can matter to claims, told from the kernel's bytes before a route is parsed.

A router holds a million routes, claims touch a few of them, and to parse one in Python takes 20 us. What is not told
for sure is let through: a plan of too many routes is the same plan.
"""

import socket
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from .netlink import (
    NLM_F_DUMP_INTR,
    RTA_DST,
    RTA_TABLE,
    RTM_NEWROUTE,
    Message,
    message_at,
    message_starts,
    route_of,
)
from .prefix import ADDRESS_BITS, Key, Prefix, halves, order
from .route import ROUTE_PROTOCOL

VERSIONS: Final[dict[int, int]] = {socket.AF_INET: 4, socket.AF_INET6: 6}
WORD: Final = 4

Texts = npt.NDArray[np.bytes_]
"""Addresses, or keys (an address and a byte of length): both sort as numbers do."""
Bytes = npt.NDArray[np.uint8]


def _layout(width: int) -> np.dtype[np.void]:
    """A route's message as far as it is read here: nlmsghdr, rtmsg, RTA_TABLE, RTA_DST.

    In this order fib_dump_info (net/ipv4/fib_semantics.c) and rt6_fill_node (net/ipv6/route.c) write them.
    """
    return np.dtype(
        [
            ("size", "=u4"), ("kind", "=u2"), ("flags", "=u2"), ("sequence", "=u4"), ("port", "=u4"),
            ("family", "u1"), ("length", "u1"), ("source_length", "u1"), ("tos", "u1"),
            ("table", "u1"), ("protocol", "u1"), ("scope", "u1"), ("type", "u1"), ("route_flags", "=u4"),
            ("table_size", "=u2"), ("table_kind", "=u2"), ("whole_table", "=u4"),
            ("address_size", "=u2"), ("address_kind", "=u2"), ("address", "u1", (width,)),
        ]
    )  # fmt: skip


class Sieve:
    """Lets through the agent's routes, those that a plan can clone, and of those that it can only name enough.

    Args:
        family: AF_INET or AF_INET6; of `claims` and `parts` only these count.
        claims: routes that cover one of them, or a half of it, are let through.
        parts: and those that cover one of these.
        enough: and those to so many prefixes inside each claim, the first that come.
    """

    def __init__(self, family: int, claims: Iterable[Prefix], parts: Iterable[Key], enough: int) -> None:
        self._family: Final = family
        self._version: Final = VERSIONS[family]
        self._width: Final = ADDRESS_BITS[self._version] // 8
        self._layout: Final = _layout(self._width)
        self._masks: Final = _masks(self._width)
        keys = {order(prefix) for prefix in claims}
        self._claims: Final = self._texts_of(keys)
        self._asked: Final = self._texts_of(keys.union(parts, *(halves(key) for key in keys)))
        self._asked_addresses: Final = _texts(_bytes(self._asked, self._width + 1)[:, : self._width])
        lengths = _bytes(self._claims, self._width + 1)[:, self._width]
        self._lengths: Final = [int(length) for length in np.unique(lengths)[::-1]]
        self._enough: Final = enough
        self._named: Final[dict[int, set[bytes]]] = {}
        self._full: Final = np.zeros(len(self._claims), dtype=np.bool_)

    def sift(self, datagram: bytes) -> Iterator[Message]:
        """The messages of a datagram that may matter.

        Raises:
            ValueError: a message's length does not fit, or a route that may matter is damaged.
        """
        starts = np.fromiter(message_starts(datagram), dtype=np.intp)
        rows = self._rows(datagram, starts)
        plain = (
            (rows["kind"] == RTM_NEWROUTE)
            & (rows["flags"] & NLM_F_DUMP_INTR == 0)
            & (rows["table_kind"] == RTA_TABLE)
            & (rows["length"] <= 8 * self._width)
            & ((rows["length"] == 0) | (rows["address_kind"] == RTA_DST))
        )
        own = rows["protocol"] == ROUTE_PROTOCOL
        addresses = np.where((rows["length"] == 0)[:, None], np.uint8(0), rows["address"])
        lengths = np.where(plain, rows["length"], 0)
        keys = _texts(np.column_stack([addresses, lengths]))
        through = ~plain | own | self._covers(keys, addresses | ~self._masks[lengths])
        for inside, claim in self._inside(np.flatnonzero(~through), addresses, lengths):
            through[inside] = self._is_named(
                message_at(datagram, int(starts[inside])), bytes(keys[inside]), claim
            )
        for row in np.flatnonzero(through):
            yield message_at(datagram, int(starts[row]))

    def _rows(self, datagram: bytes, starts: npt.NDArray[np.intp]) -> npt.NDArray[np.void]:
        size = self._layout.itemsize
        words = np.frombuffer(datagram + bytes(-len(datagram) % WORD + size), dtype="=u4")
        rows: npt.NDArray[np.void] = words[starts[:, None] // WORD + np.arange(size // WORD)].view(
            self._layout
        )
        return rows[:, 0]

    def _covers(self, keys: Texts, last: Bytes) -> npt.NDArray[np.bool_]:
        """Whether a route covers a prefix asked about: the first that sorts not before the route lies in it."""
        if not len(self._asked):
            return np.zeros(len(keys), dtype=np.bool_)
        place = np.searchsorted(self._asked, keys)
        beyond = place == len(self._asked)
        covers: npt.NDArray[np.bool_] = ~beyond & (
            self._asked_addresses[np.where(beyond, 0, place)] <= _texts(last)
        )
        return covers

    def _inside(
        self, rows: npt.NDArray[np.intp], addresses: Bytes, lengths: Bytes
    ) -> Iterator[tuple[int, int]]:
        """Of some rows those inside a claim that has not enough yet, with the nearest claim's place."""
        for length in self._lengths:
            keys = np.column_stack(
                [addresses[rows] & self._masks[length], np.full(len(rows), length, np.uint8)]
            )
            wanted = _texts(keys)
            place = np.minimum(np.searchsorted(self._claims, wanted), len(self._claims) - 1)
            found = (self._claims[place] == wanted) & (lengths[rows] > length)
            for at in np.flatnonzero(found & ~self._full[place]):
                yield int(rows[at]), int(place[at])
            rows = rows[~found]

    def _is_named(self, message: Message, key: bytes, claim: int) -> bool:
        if self._full[claim]:
            return False
        route = route_of(message, self._family)
        if route is None or not route.path.usable:
            return False
        named = self._named.setdefault(claim, set())
        named.add(key)
        self._full[claim] = len(named) >= self._enough
        return True

    def _texts_of(self, prefixes: Iterable[Key]) -> Texts:
        width = self._width
        texts = {
            address.to_bytes(width, "big") + bytes([length])
            for version, address, length in prefixes
            if version == self._version
        }
        return np.array(sorted(texts), dtype=f"S{width + 1}")


def _masks(width: int) -> Bytes:
    """Row n has the first n bits set."""
    bits = 8 * width
    return np.packbits(np.tri(bits + 1, bits, -1, dtype=np.uint8), axis=1)


def _texts(rows: Bytes) -> Texts:
    return np.ascontiguousarray(rows).view(f"S{rows.shape[1]}")[:, 0]


def _bytes(texts: Texts, width: int) -> Bytes:
    return texts.view(np.uint8).reshape(-1, width)
