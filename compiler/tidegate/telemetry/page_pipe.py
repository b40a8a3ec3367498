"""Writes memory into a pipe without copying it: the kernel lends its pages to who reads them, by vmsplice(2)."""

import ctypes
import errno
import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import numpy as np

_PIPE_BYTES: Final = 2**20  # as large as Linux lets any user make one (/proc/sys/fs/pipe-max-size)
_REFUSED: Final = (errno.ENOSYS, errno.EPERM)  # by a sandbox


class _Part(ctypes.Structure):
    """`struct iovec` of <sys/uio.h>."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


_vmsplice = ctypes.CDLL(None, use_errno=True).vmsplice
_vmsplice.argtypes = (ctypes.c_int, ctypes.POINTER(_Part), ctypes.c_ulong, ctypes.c_uint)
_vmsplice.restype = ctypes.c_ssize_t


def write_pages(pipe: int, parts: Iterable[memoryview]) -> None:
    """Write all of them. Returns while the last may be unread: they must not change before the pipe is empty.

    Args:
        pipe: descriptor of its writing end.
        parts: contiguous bytes.

    Raises:
        OSError: nobody reads any more, or the pipe is none.
    """
    with suppress(OSError):  # another user's limit; a smaller pipe is slower, and nothing else
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    for part in parts:
        _write(pipe, part)


def _write(pipe: int, data: memoryview) -> None:
    begin = np.frombuffer(data, np.uint8).ctypes.data
    written = 0
    while written < len(data):
        count = _vmsplice(pipe, _Part(begin + written, len(data) - written), 1, 0)
        code = ctypes.get_errno() if count < 0 else 0
        if code in _REFUSED:
            count = os.write(pipe, data[written:])
        elif code and code != errno.EINTR:
            raise OSError(code, os.strerror(code))
        written += max(count, 0)
