"""What open connections were given, as the kernel keeps it with their sockets."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tidegate_edge.libbpf.descriptors import closing
from tidegate_edge.libbpf.iterators import load_iterator

from . import layout
from .held import NEEDS, Address, Steered

OBJECT: Final = Path(__file__).with_name("steered.bpf.o")
PROGRAM: Final = "write_steered"

_READ: Final = 1 << 16  # bytes


def read_steered(connections: int, remote: Address | None = None) -> Iterator[Steered]:
    """Connections that matched a prefix, in all network namespaces.

    Args:
        connections: descriptor of the map.
        remote: only with this peer; the records of others are not decoded.

    Raises:
        Unavailable: this host can't run the iterator, and why.
        OSError: the kernel ends the walk with an error.
    """
    wanted = b"" if remote is None else layout.encode_address(remote)
    iterator = load_iterator(OBJECT, (PROGRAM,), NEEDS, over=connections)
    try:
        with closing(iterator.start()) as walk:
            rest = b""
            while read := _read(walk):
                data = rest + read
                whole = len(data) - len(data) % layout.STEERED_SIZE
                for at in range(0, whole, layout.STEERED_SIZE):
                    if data.startswith(wanted, at):
                        yield layout.decode_steered(data[at : at + layout.STEERED_SIZE])
                rest = data[whole:]
    finally:
        iterator.unload()


def _read(walk: int) -> bytes:
    while True:
        try:
            return os.read(walk, _READ)
        except BlockingIOError:
            continue  # many entries passed over: the kernel lets others have their turn
