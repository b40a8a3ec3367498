"""A BPF object file in the kernel: its programs and maps."""

import ctypes
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from .library import Needs, Unavailable, heard, library, reason

_NONE: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Loaded:
    """An object in the kernel; what is neither pinned nor attached leaves it with `close` or with this process.

    Attributes:
        library: libbpf.
        handle: libbpf's object.
    """

    library: ctypes.CDLL
    handle: int

    def program(self, name: str) -> int:
        """The program as libbpf knows it."""
        found: int = self.library.bpf_object__find_program_by_name(self.handle, name.encode())
        return found

    def program_fd(self, name: str) -> int:
        """The program's descriptor, closed by `close`."""
        descriptor: int = self.library.bpf_program__fd(self.program(name))
        return descriptor

    def map_fd(self, name: str) -> int:
        """The map's descriptor, closed by `close`."""
        descriptor: int = self.library.bpf_map__fd(
            self.library.bpf_object__find_map_by_name(self.handle, name.encode())
        )
        return descriptor

    def close(self) -> None:
        """Forget the object."""
        self.library.bpf_object__close(self.handle)


def load(
    path: Path, needs: Needs, *, leave_out: Collection[str] = (), reuse: Mapping[str, int] = _NONE
) -> Loaded:
    """Load an object file and let the verifier check it.

    Args:
        path: of the object.
        needs: for the message.
        leave_out: programs of the object that are not loaded.
        reuse: descriptors of maps that take the place of the object's of that name.

    Raises:
        Unavailable: and why.
    """
    if not path.is_file():
        raise Unavailable(f"this installation has no {path.name}: it was built without clang", needs)
    libbpf = library(needs)
    said: list[str] = []
    with heard(said):
        handle = libbpf.bpf_object__open_file(os.fsencode(path), None)
        if not handle:
            raise Unavailable(reason("libbpf can't read the object", ctypes.get_errno(), said, needs), needs)
        for name in leave_out:
            if program := libbpf.bpf_object__find_program_by_name(handle, name.encode()):
                libbpf.bpf_program__set_autoload(program, False)
        for name, descriptor in reuse.items():
            libbpf.bpf_map__reuse_fd(libbpf.bpf_object__find_map_by_name(handle, name.encode()), descriptor)
        if libbpf.bpf_object__load(handle) < 0:
            why = reason("the kernel refuses the program", ctypes.get_errno(), said, needs)
            libbpf.bpf_object__close(handle)
            raise Unavailable(why, needs)
    return Loaded(libbpf, handle)
