"""Rows as length-delimited protobuf, which their memory already is."""

import os
from typing import Final

import numpy as np

from tidegate_edge.schemas.rows import ROW_LENGTH, read_rows
from tidegate_edge.sockets.decode import Rows

from .form import Form


def _encode(rows: Rows) -> memoryview:
    return rows.view(np.uint8).data


def _whole_length(fd: int, size: int) -> int:
    if size:
        read_rows(os.pread(fd, ROW_LENGTH, 0))
    return size - size % ROW_LENGTH


PROTOBUF: Final = Form(_encode, _whole_length, for_people=False)
