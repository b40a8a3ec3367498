"""A block of rows: what is read, admitted and inserted at once."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

# Large enough for ClickHouse to write few parts, small enough (120 MB) for a control node.
BLOCK_ROWS: Final = 250_000


@dataclass(frozen=True, slots=True)
class Block:
    """Up to `BLOCK_ROWS` rows of schemas/rows.py; the next block of a file may lie in the same memory.

    `left_out` counts, by reason, records of the file that gave no row.
    """

    rows: npt.NDArray[np.void]
    left_out: Mapping[str, int] = field(default_factory=dict)

    def digest(self) -> str:
        """Hex SHA-256 of the rows' bytes."""
        return hashlib.sha256(np.ascontiguousarray(self.rows).view(np.uint8).data).hexdigest()
