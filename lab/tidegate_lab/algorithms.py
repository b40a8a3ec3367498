"""BBR through the kernel's own functions (struct_ops), as it is and with its pacing raised, under names of their own.

Each is registered by a link of this process's, so that the kernel forgets it when the process ends, however it ends.
Connections that have it then keep it; new ones can't choose it any more.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidegate_edge.libbpf.library import Needs, Unavailable, heard, reason, succeed
from tidegate_edge.libbpf.maps import look_up
from tidegate_edge.libbpf.objects import Loaded

from tidegate_lab.bpf import built, libbpf

WRAPPED: Final = "bbr_wrapped"
RAISE: Final = "bbr_raise"
RAISE_BOUND: Final = "bbr_raise_bound"
ALGORITHMS: Final = (WRAPPED, RAISE, RAISE_BOUND)

_NEEDS: Final = Needs(
    linux="6.10 or later with BBR",
    capabilities="CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON",
    otherwise="run the laboratory as root on a current kernel",
)
_F_LINK: Final = 1 << 13  # linux/bpf.h, BPF_F_LINK
_ATTACH_STRUCT_OPS: Final = 44  # linux/bpf.h, BPF_STRUCT_OPS
_SENDER: Final = struct.Struct("=3Q")


@dataclass(frozen=True, slots=True)
class Sender:
    """struct sender of bbr_raise.bpf.c.

    Attributes:
        path: bytes, bandwidth x min_rtt as BBR estimates them; 0: not yet.
        acks: acknowledgements since the socket took the algorithm.
        raised: those upon which pacing was raised.
    """

    path: int
    acks: int
    raised: int


@contextmanager
def registered() -> Iterator[int]:
    """Register `ALGORITHMS` for sockets of every network namespace, for the length of the block.

    Yields:
        The descriptor of the map that `sender` reads; it may be given to a child.

    Raises:
        Unavailable: and why; nothing is registered then.
        RuntimeError: there is no clang, or it failed.
    """
    with ExitStack() as stack:
        with built("bbr_raise") as path:
            loaded = _load(path)
        stack.callback(loaded.close)
        for name in ALGORITHMS:
            stack.callback(os.close, _register(loaded, name))
        yield loaded.map_fd("senders")


def sender(senders: int, socket: int) -> Sender | None:
    """What the algorithm knows of a socket of this process; None: the socket never had one of these.

    Args:
        senders: descriptor of the map.
        socket: descriptor of the socket.

    Raises:
        OSError: the descriptor is no socket's.
    """
    value = look_up(senders, struct.pack("=i", socket), _SENDER.size)
    return None if value is None else Sender(*_SENDER.unpack(value))


def _load(path: Path) -> Loaded:
    library = libbpf(_NEEDS)
    said: list[str] = []
    with heard(said):
        handle = library.bpf_object__open_file(os.fsencode(path), None)
        if not handle:
            raise Unavailable(
                reason("libbpf can't read the object", ctypes.get_errno(), said, _NEEDS), _NEEDS
            )
        for name in ALGORITHMS:
            library.bpf_map__set_map_flags(_map(library, handle, name), _F_LINK)
        if library.bpf_object__load(handle) < 0:
            why = reason("the kernel refuses the programs", ctypes.get_errno(), said, _NEEDS)
            library.bpf_object__close(handle)
            raise Unavailable(why, _NEEDS)
    return Loaded(library, handle)


def _register(loaded: Loaded, name: str) -> int:
    """The descriptor of the link that holds the algorithm."""
    said: list[str] = []
    library = loaded.library
    with heard(said):
        link = library.bpf_map__attach_struct_ops(_map(library, loaded.handle, name))
        if not link:
            raise _refused(name, ctypes.get_errno(), said)
        try:
            descriptor: int = library.bpf_link__fd(link)
            if descriptor != loaded.map_fd(name):
                return os.dup(descriptor)
            # libbpf before 1.2 only fills the structure in: it knows of no links.
            return succeed(library.bpf_link_create(descriptor, 0, _ATTACH_STRUCT_OPS, None))
        except OSError as error:
            raise _refused(name, error.errno or 0, said) from error
        finally:
            library.bpf_link__destroy(link)


def _map(library: ctypes.CDLL, handle: int, name: str) -> int:
    found: int = library.bpf_object__find_map_by_name(handle, name.encode())
    return found


def _refused(name: str, code: int, said: list[str]) -> Unavailable:
    if code == errno.EEXIST:
        return Unavailable(f"another process holds the algorithm {name}", _NEEDS)
    return Unavailable(reason(f"the kernel refuses the algorithm {name}", code, said, _NEEDS), _NEEDS)
