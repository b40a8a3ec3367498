"""Reads a file of the collector's own rows, block by block, and refuses the first byte that is not a row."""

import os
import stat
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.errors import Failure
from tidegate.schemas.rows import ROW, ROW_LENGTH, read_rows
from tidegate.telemetry.block import BLOCK_ROWS, PIECES_HELD, Block
from tidegate.telemetry.file_refusal import changed, unreadable
from tidegate.telemetry.frames import framed

MAX_BYTES: Final = 64 * 2**30
# What is done with a piece finds it in the processor's cache. Four times as many, or a fifth, is slower.
PIECE_ROWS: Final = 2500
_PIECE: Final = PIECE_ROWS * ROW_LENGTH


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
            memory = cycle([np.empty(_PIECE, np.uint8) for _ in range(PIECES_HELD)])
            block = BLOCK_ROWS * ROW_LENGTH
            for start in range(skip * block, status.st_size, block):
                end = min(start + block, status.st_size)
                yield Block((end - start) // ROW_LENGTH, _pieces(path, file.fileno(), memory, start, end))
    except OSError as error:
        raise unreadable(path, error) from error


def _pieces(
    path: Path, file: int, memory: Iterator[npt.NDArray[np.uint8]], start: int, end: int
) -> Iterator[npt.NDArray[np.void]]:
    for offset in range(start, end, _PIECE):
        piece = next(memory)[: end - offset]
        filled = 0
        try:
            while filled < len(piece) and (count := os.preadv(file, [piece[filled:].data], offset + filled)):
                filled += count
        except OSError as error:
            raise unreadable(path, error) from error
        if filled < len(piece):
            raise changed(path)
        _check(piece.data, path, offset)
        yield piece.view(ROW)


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
