"""Entries of BPF maps: keys and values are bytes of the map's sizes."""

import ctypes
import errno
from collections.abc import Iterator
from typing import Final

from .descriptors import map_info
from .library import bound, succeed

NO_PREALLOC: Final = 1  # BPF_F_NO_PREALLOC

# Errors of a kernel that has no batches for this kind of map: before 5.6, for tries before 5.13.
_NO_BATCH: Final = frozenset({errno.EINVAL, errno.ENOTSUP, 524})  # 524: the kernel's own ENOTSUPP
_BATCH: Final = 4096  # entries


class _CreateOptions(ctypes.Structure):
    """struct bpf_map_create_opts (bpf/bpf.h), as far as map_flags."""

    _fields_ = (("sz", ctypes.c_size_t), ("unused", ctypes.c_uint32 * 5), ("map_flags", ctypes.c_uint32))


def create(kind: int, name: str, key_size: int, value_size: int, max_entries: int) -> int:
    """A new map that takes memory by the entry; returns its descriptor.

    Raises:
        OSError: the kernel refuses.
    """
    options = _CreateOptions(sz=ctypes.sizeof(_CreateOptions), map_flags=NO_PREALLOC)
    return succeed(
        bound().bpf_map_create(kind, name.encode(), key_size, value_size, max_entries, ctypes.byref(options))
    )


def freeze(descriptor: int) -> None:
    """Let no system call change the map again.

    Raises:
        OSError: the kernel refuses.
    """
    succeed(bound().bpf_map_freeze(descriptor))


def look_up(descriptor: int, key: bytes, value_size: int) -> bytes | None:
    """The value, or None.

    Raises:
        OSError: the kernel refuses.
    """
    value = ctypes.create_string_buffer(value_size)
    result = bound().bpf_map_lookup_elem(descriptor, key, value)
    if result == -errno.ENOENT:
        return None
    succeed(result)
    return value.raw


def put(descriptor: int, key: bytes, value: bytes) -> None:
    """Add or replace one entry.

    Raises:
        OSError: the kernel refuses.
    """
    succeed(bound().bpf_map_update_elem(descriptor, key, value, 0))


def remove(descriptor: int, key: bytes) -> None:
    """Remove one entry; none is as well.

    Raises:
        OSError: the kernel refuses.
    """
    result = bound().bpf_map_delete_elem(descriptor, key)
    if result != -errno.ENOENT:
        succeed(result)


def fill(descriptor: int, keys: bytes, values: bytes, entries: int) -> None:
    """Put many entries, in one call where the kernel can.

    Args:
        descriptor: of the map.
        keys: one behind the other.
        values: in the order of keys.
        entries: how many.

    Raises:
        OSError: the kernel refuses one; those before it are in.
    """
    if not entries:
        return
    count = ctypes.c_uint32(entries)
    result = bound().bpf_map_update_batch(descriptor, keys, values, ctypes.byref(count), None)
    if -result not in _NO_BATCH:
        succeed(result)
        return
    key_size, value_size = len(keys) // entries, len(values) // entries
    for at in range(entries):
        put(
            descriptor,
            keys[at * key_size : (at + 1) * key_size],
            values[at * value_size : (at + 1) * value_size],
        )


def entries(descriptor: int) -> Iterator[tuple[bytes, bytes]]:
    """All entries; of a map that changes meanwhile, some may come twice or not at all.

    Raises:
        OSError: the kernel refuses.
    """
    info = map_info(descriptor)
    found = _by_batches(descriptor, info.key_size, info.value_size)
    return iter(found) if found is not None else _one_by_one(descriptor, info.key_size, info.value_size)


def _by_batches(descriptor: int, key_size: int, value_size: int) -> list[tuple[bytes, bytes]] | None:
    keys = ctypes.create_string_buffer(key_size * _BATCH)
    values = ctypes.create_string_buffer(value_size * _BATCH)
    place = ctypes.create_string_buffer(max(key_size, 8))
    found: list[tuple[bytes, bytes]] = []
    begun = None
    while True:
        count = ctypes.c_uint32(_BATCH)
        result = bound().bpf_map_lookup_batch(
            descriptor, begun, place, keys, values, ctypes.byref(count), None
        )
        if -result in _NO_BATCH and begun is None:
            return None
        if result != -errno.ENOENT:  # which is the end, and comes with the last entries
            succeed(result)
        read_keys, read_values = keys.raw, values.raw
        found += [
            (
                read_keys[at * key_size : (at + 1) * key_size],
                read_values[at * value_size : (at + 1) * value_size],
            )
            for at in range(count.value)
        ]
        if result == -errno.ENOENT:
            return found
        begun = place


def _one_by_one(descriptor: int, key_size: int, value_size: int) -> Iterator[tuple[bytes, bytes]]:
    key: bytes | None = None
    following = ctypes.create_string_buffer(key_size)
    while (result := bound().bpf_map_get_next_key(descriptor, key, following)) == 0:
        key = following.raw
        value = look_up(descriptor, key, value_size)
        if value is not None:
            yield key, value
    if result != -errno.ENOENT:
        succeed(result)
