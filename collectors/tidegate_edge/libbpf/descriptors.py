"""Pinned programs, maps and links by their paths, and what the kernel says of a descriptor."""

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .library import bound, succeed

# Of linux/bpf.h.
MAP_TYPE_LPM_TRIE: Final = 11
LINK_TYPE_CGROUP: Final = 3
ATTACH_CGROUP_SOCK_OPS: Final = 3

_INFO_LENGTH: Final = 256  # longer than any of today's
_MAX_MAPS: Final = 64  # of a program, the kernel's MAX_USED_MAPS


@dataclass(frozen=True, slots=True)
class MapInfo:
    """struct bpf_map_info: sizes in bytes."""

    kind: int
    identity: int
    key_size: int
    value_size: int
    name: str


@dataclass(frozen=True, slots=True)
class ProgramInfo:
    """struct bpf_prog_info, and the identities of the maps that the program uses."""

    identity: int
    name: str
    maps: frozenset[int]


@dataclass(frozen=True, slots=True)
class LinkInfo:
    """struct bpf_link_info of a link with a cgroup; `cgroup` is 0 once that is gone."""

    kind: int
    program: int
    cgroup: int
    attach_type: int


@contextmanager
def closing(descriptor: int) -> Iterator[int]:
    """The descriptor, closed at the end."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def get(path: Path) -> int:
    """A descriptor of what is pinned there.

    Raises:
        OSError: nothing is, or it is nothing of BPF's.
    """
    return succeed(bound().bpf_obj_get(os.fsencode(path)))


def pin(descriptor: int, path: Path) -> None:
    """Pin aside, then rename: what was pinned there before is there until the new is.

    Raises:
        OSError: the kernel refuses.
    """
    pin_aside(descriptor, path).rename(path)


def pin_aside(descriptor: int, path: Path) -> Path:
    """Pin beside a path, to be renamed to it; returns where.

    Raises:
        OSError: the kernel refuses.
    """
    beside = aside(path)
    beside.unlink(missing_ok=True)
    succeed(bound().bpf_obj_pin(descriptor, os.fsencode(beside)))
    return beside


def aside(path: Path) -> Path:
    """Where `pin_aside` pins; the BPF file system takes no dots."""
    return path.with_name(f"{path.name}_next")


def map_info(descriptor: int) -> MapInfo:
    """Of a map.

    Raises:
        OSError: the descriptor is of another kind.
    """
    kind, identity, key_size, value_size, name = struct.unpack_from(
        "=4I8x16s", _info(descriptor, bytearray(_INFO_LENGTH))
    )
    return MapInfo(kind, identity, key_size, value_size, _text(name))


def program_info(descriptor: int) -> ProgramInfo:
    """Of a program.

    Raises:
        OSError: the descriptor is of another kind.
    """
    maps = (ctypes.c_uint32 * _MAX_MAPS)()
    asked = bytearray(_INFO_LENGTH)
    struct.pack_into("=IQ", asked, 52, _MAX_MAPS, ctypes.addressof(maps))
    answer = _info(descriptor, asked)
    identity, used, name = struct.unpack_from("=4xI44xI8x16s", answer)
    return ProgramInfo(identity, _text(name), frozenset(maps[: min(used, _MAX_MAPS)]))


def link_info(descriptor: int) -> LinkInfo:
    """Of a link with a cgroup.

    Raises:
        OSError: the descriptor is of another kind.
    """
    kind, program, cgroup, attach_type = struct.unpack_from(
        "=I4xI4xQI", _info(descriptor, bytearray(_INFO_LENGTH))
    )
    return LinkInfo(kind, program, cgroup, attach_type)


def link_cgroup(program: int, cgroup: int) -> int:
    """Attach a sock_ops program to a cgroup beside those of others; returns the link's descriptor.

    Raises:
        OSError: the kernel refuses.
    """
    return succeed(bound().bpf_link_create(program, cgroup, ATTACH_CGROUP_SOCK_OPS, None))


def relink(link: int, program: int) -> None:
    """Put a program in the place of the link's, without a moment between.

    Raises:
        OSError: the kernel refuses; ENOLINK where the cgroup is gone.
    """
    succeed(bound().bpf_link_update(link, program, None))


def detach(link: int) -> None:
    """Take the link's program from its cgroup, whoever else holds the link.

    Raises:
        OSError: the kernel refuses.
    """
    succeed(bound().bpf_link_detach(link))


def _info(descriptor: int, asked: bytearray) -> bytearray:
    buffer = (ctypes.c_char * len(asked)).from_buffer(asked)
    length = ctypes.c_uint32(len(asked))
    succeed(bound().bpf_obj_get_info_by_fd(descriptor, buffer, ctypes.byref(length)))
    return asked


def _text(name: bytes) -> str:
    return name.partition(b"\0")[0].decode(errors="replace")
