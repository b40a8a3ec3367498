"""Reads a file of the collector's own rows, block by block, and refuses the first byte that is not a row."""

import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from tidegate.errors import Failure
from tidegate.schemas.rows import ROW, ROW_LENGTH, read_rows
from tidegate.telemetry.block import BLOCK_ROWS, Block
from tidegate.telemetry.frames import framed

MAX_BYTES: Final = 64 * 2**30
_READ_AT_ONCE: Final = 1024 * ROW_LENGTH


def read(path: Path, skip: int = 0) -> Iterator[Block]:
    """The file's rows. It is read, not mapped, so that a file cut meanwhile cannot kill the process.

    Args:
        path: of the file.
        skip: so many blocks at its beginning.

    Raises:
        Failure: unreadable, not a regular file, too large, or damaged: the message names the byte.
    """
    try:
        with path.open("rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Failure(f"{path}: not a regular file")
            if status.st_size > MAX_BYTES:
                raise Failure(f"{path}: larger than {MAX_BYTES} bytes")
            # Of numpy, which asks the kernel for large pages: they come at a quarter of the small ones' price.
            buffer = np.empty(min(status.st_size, BLOCK_ROWS * ROW_LENGTH), np.uint8)
            offset = file.seek(skip * BLOCK_ROWS * ROW_LENGTH)
            while filled := _fill(file, buffer.data, path, offset):
                yield Block(buffer[:filled].view(ROW))
                offset += filled
    except OSError as error:
        raise Failure(f"{path}: cannot be read: {error.strerror}") from error


def _fill(file: io.FileIO, buffer: memoryview, path: Path, offset: int) -> int:
    """Read whole rows and look at their frame while they are in the processor's cache; returns bytes."""
    for start in range(0, len(buffer), _READ_AT_ONCE):
        piece = buffer[start : start + _READ_AT_ONCE]
        filled = 0
        while filled < len(piece) and (count := file.readinto(piece[filled:])):
            filled += count
        _check(piece[:filled], path, offset + start)
        if filled < len(piece):
            return start + filled
    return len(buffer)


def _check(data: memoryview, path: Path, offset: int) -> None:
    whole = len(data) // ROW_LENGTH * ROW_LENGTH
    good = framed(data[:whole])
    if whole == len(data) and good.all():
        return
    first = int(np.argmin(good)) * ROW_LENGTH if not good.all() else whole
    try:
        read_rows(data[first : first + ROW_LENGTH])
    except ValueError as error:
        text, _ = error.args
        byte = offset + first
        raise Failure(
            f"{path}: byte {byte}:{text.partition(':')[2]}",
            help=f"keep the whole rows before it: head -c {byte} {path} > whole.pb"
            if byte
            else "tidegate ingest reads rows of tidegate-collector and M-Lab's .tgz archives",
        ) from error
