"""A BPF iterator: a program that the kernel runs over each entry of one of its tables when it is read."""

import ctypes
from dataclasses import dataclass
from pathlib import Path

from .library import Needs, Unavailable, heard, reason, succeed
from .objects import Loaded, load


class _MapInfo(ctypes.Structure):
    """The `map` of union bpf_iter_link_info (linux/bpf.h)."""

    _fields_ = (("map_fd", ctypes.c_uint32), ("unused", ctypes.c_uint32 * 3))


class _AttachOptions(ctypes.Structure):
    """struct bpf_iter_attach_opts (bpf/libbpf.h)."""

    _fields_ = (("sz", ctypes.c_size_t), ("link_info", ctypes.c_void_p), ("link_info_len", ctypes.c_uint32))


@dataclass(frozen=True, slots=True)
class Iterator:
    """A loaded and attached iterator.

    Attributes:
        loaded: its object.
        link: libbpf's link.
    """

    loaded: Loaded
    link: int

    def start(self) -> int:
        """A descriptor from which one walk is read, in the network namespace of the calling thread.

        Raises:
            OSError: the kernel refuses.
        """
        libbpf = self.loaded.library
        return succeed(libbpf.bpf_iter_create(libbpf.bpf_link__fd(self.link)))

    def unload(self) -> None:
        """Detach and forget the program and its maps."""
        self.loaded.library.bpf_link__destroy(self.link)
        self.loaded.close()


def load_iterator(path: Path, program: str, needs: Needs, *, over: int | None = None) -> Iterator:
    """Load an object file and attach its iterator.

    Args:
        path: of the object.
        program: name of the iterator in it.
        needs: for the message.
        over: descriptor of the map that it walks, where it walks one.

    Raises:
        Unavailable: and why.
    """
    loaded = load(path, needs)
    said: list[str] = []
    with heard(said):
        options = None
        if over is not None:
            info = _MapInfo(map_fd=over)
            options = ctypes.byref(
                _AttachOptions(
                    ctypes.sizeof(_AttachOptions), ctypes.addressof(info), ctypes.sizeof(ctypes.c_uint32)
                )
            )
        link = loaded.library.bpf_program__attach_iter(loaded.program(program), options)
        if not link:
            why = reason("the kernel refuses the program", ctypes.get_errno(), said, needs)
            loaded.close()
            raise Unavailable(why, needs)
    return Iterator(loaded, link)
