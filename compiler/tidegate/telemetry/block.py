"""A block of rows: what is admitted and inserted at once. It is read in pieces."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

# Large enough for ClickHouse to write few parts, small enough (120 MB) for a control node.
BLOCK_ROWS: Final = 250_000
PIECES_HELD: Final = 6


@dataclass(frozen=True, slots=True)
class Block:
    """About `BLOCK_ROWS` rows of schemas/rows.py, fewer at a file's end.

    Attributes:
        count: how many there are.
        pieces: the rows, once; reading may raise Failure. A piece's memory is that of the `PIECES_HELD`-th after it.
        left_out: by reason, records of the file that gave no row.
    """

    count: int
    pieces: Iterator[npt.NDArray[np.void]]
    left_out: Mapping[str, int] = field(default_factory=dict)
