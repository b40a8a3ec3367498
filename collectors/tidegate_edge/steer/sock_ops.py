"""Which sock_ops programs stand at a cgroup: two read-only system calls, so that no libbpf is needed to ask."""

import ctypes
import os
import platform
import struct
from pathlib import Path
from typing import Final

SYS_BPF: Final = {"x86_64": 321, "aarch64": 280, "riscv64": 280}  # asm/unistd.h
BPF_OBJ_GET: Final = 7  # linux/bpf.h
BPF_PROG_QUERY: Final = 16
BPF_CGROUP_SOCK_OPS: Final = 3
MOST_PROGRAMS: Final = 64  # BPF_CGROUP_MAX_PROGS, linux/bpf-cgroup-defs.h


def attached(cgroup: Path) -> tuple[int, ...]:
    """The numbers of the programs attached there, in the order in which they run; empty where one may not ask."""
    numbers = (ctypes.c_uint32 * MOST_PROGRAMS)()
    try:
        directory = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        # target_fd, attach_type, query_flags, attach_flags, prog_ids, prog_cnt
        asked = struct.pack(
            "=IIIIQI4x", directory, BPF_CGROUP_SOCK_OPS, 0, 0, ctypes.addressof(numbers), MOST_PROGRAMS
        )
        _, answer = _bpf(BPF_PROG_QUERY, asked)
    except OSError:
        return ()
    finally:
        os.close(directory)
    return tuple(numbers[: struct.unpack_from("=I", answer, 24)[0]])


def pinned_programs(directory: Path) -> frozenset[int]:
    """The numbers of the programs that are pinned in a directory, by themselves or by their links."""
    found = set()
    try:
        paths = list(directory.iterdir())
    except OSError:
        return frozenset()
    for path in paths:
        name = ctypes.create_string_buffer(os.fsencode(path))
        try:
            pinned, _ = _bpf(BPF_OBJ_GET, struct.pack("=QII", ctypes.addressof(name), 0, 0))
        except OSError:
            continue
        try:
            lines = Path(f"/proc/self/fdinfo/{pinned}").read_text(encoding="ascii").splitlines()
        finally:
            os.close(pinned)
        found |= {int(line.split()[1]) for line in lines if line.startswith("prog_id:")}
    return frozenset(found)


def _bpf(command: int, attributes: bytes) -> tuple[int, bytes]:
    number = SYS_BPF.get(platform.machine())
    if number is None:
        raise OSError(f"the number of bpf(2) on {platform.machine()} is not known")
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    result = libc.syscall(number, command, buffer, len(attributes))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result, buffer.raw
