"""A BPF iterator: a program that the kernel runs over each entry of one of its tables when it is read."""

import ctypes
from collections.abc import Collection, Sequence
from contextlib import suppress
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
        program: its name in the object.
        link: libbpf's link.
    """

    loaded: Loaded
    program: str
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


def load_iterator(path: Path, programs: Sequence[str], needs: Needs, *, over: int | None = None) -> Iterator:
    """Load an object file and attach the best of its iterators that this kernel takes.

    Args:
        path: of the object.
        programs: names of all the iterators in it, the best first.
        needs: for the message.
        over: descriptor of the map that they walk, where they walk one.

    Raises:
        Unavailable: the kernel takes none; why it does not take the last.
    """
    *better, last = programs
    for program in better:
        with suppress(Unavailable):
            return _load_one(path, program, {*programs} - {program}, needs, over)
    return _load_one(path, last, better, needs, over)


def _load_one(path: Path, program: str, others: Collection[str], needs: Needs, over: int | None) -> Iterator:
    loaded = load(path, needs, leave_out=others)
    handle = loaded.program(program)
    if not handle:
        loaded.close()
        raise Unavailable(f"{path.name} was built for another version of this package", needs)
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
        link = loaded.library.bpf_program__attach_iter(handle, options)
        if not link:
            why = reason("the kernel refuses the program", ctypes.get_errno(), said, needs)
            loaded.close()
            raise Unavailable(why, needs)
    return Iterator(loaded, program, link)
