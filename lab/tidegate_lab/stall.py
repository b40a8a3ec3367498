"""Takes one CPU of this machine away, by turns, as a hypervisor does: for everybody who runs there."""

import ctypes
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tidegate_edge.libbpf.library import Needs, succeed
from tidegate_edge.libbpf.maps import look_up
from tidegate_edge.libbpf.objects import load

from tidegate_lab.bpf import built, libbpf

_NEEDS: Final = Needs(
    linux="6.7 or later",
    capabilities="CAP_BPF and CAP_PERFMON",
    otherwise="run the laboratory as root on a current kernel",
)
_STALL: Final = struct.Struct("=16x2QI4xQ")  # struct stall of stall.bpf.c


class _Request(ctypes.Structure):
    """struct request of stall.bpf.c."""

    _fields_ = (("on_ns", ctypes.c_uint64), ("off_ns", ctypes.c_uint64), ("seed", ctypes.c_uint32))


class _RunOptions(ctypes.Structure):
    """struct bpf_test_run_opts (bpf/bpf.h), as far as retval."""

    _fields_ = (
        ("sz", ctypes.c_size_t),
        ("data", ctypes.c_void_p * 2),
        ("data_sizes", ctypes.c_uint32 * 2),
        ("ctx_in", ctypes.c_void_p),
        ("ctx_out", ctypes.c_void_p),
        ("ctx_size_in", ctypes.c_uint32),
        ("ctx_size_out", ctypes.c_uint32),
        ("retval", ctypes.c_uint32),
    )


@dataclass(frozen=True, slots=True)
class Stall:
    """A CPU that is being taken away."""

    _map: int
    _since: float

    def share(self) -> float:
        """Of the time since the beginning, what it stood."""
        value = look_up(self._map, bytes(4), _STALL.size)
        stood_ns: int = _STALL.unpack(value or bytes(_STALL.size))[-1]
        return stood_ns / 1e9 / (time.monotonic() - self._since)


@contextmanager
def stalled(cpu: int, on_ms: float, off_ms: float, seed: int) -> Iterator[Stall]:
    """Let a CPU run for `on_ms` and stand for `off_ms` by turns while the block runs; each drawn within a half of it.

    It ends with this process, however that ends.

    Args:
        cpu: its number.
        on_ms: mean, milliseconds.
        off_ms: mean, milliseconds, 30 at most.
        seed: of the lengths; not 0.

    Raises:
        Unavailable: the kernel can't.
        RuntimeError: there is no clang, or it failed.
    """
    with built("stall") as path:
        loaded = load(path, _NEEDS)
    try:
        request = _Request(round(on_ms * 1e6), round(off_ms * 1e6), seed)
        _run_on(cpu, loaded.program_fd("begin"), request)
        yield Stall(loaded.map_fd("stalls"), time.monotonic())
    finally:
        loaded.close()


def _run_on(cpu: int, program: int, request: _Request) -> None:
    options = _RunOptions(
        sz=ctypes.sizeof(_RunOptions), ctx_in=ctypes.addressof(request), ctx_size_in=ctypes.sizeof(request)
    )
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})  # a pinned timer stays where it is started
    try:
        succeed(libbpf(_NEEDS).bpf_prog_test_run_opts(program, ctypes.byref(options)))
    finally:
        os.sched_setaffinity(0, before)
    if options.retval:
        raise RuntimeError("the kernel started no timer")
