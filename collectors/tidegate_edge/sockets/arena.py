"""Memory that a collector keeps from poll to poll: fresh pages for each poll would cost as much as decoding."""

from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate_edge.schemas.rows import ROW_LENGTH

# Some 4,000 sockets: enough to make a call of numpy cheap, small enough to stay in a processor's cache.
BUFFER_LENGTH: Final = 1 << 21

# 7.8 MB of rows.
BLOCK_ROWS: Final = 1 << 14


class Arena:
    """A receive buffer, and blocks for rows which are handed out again after `rewind`.

    Attributes:
        buffer: `BUFFER_LENGTH` bytes.
    """

    def __init__(self) -> None:
        self.buffer: Final = bytearray(BUFFER_LENGTH)
        self._blocks: list[npt.NDArray[np.uint8]] = []
        self._block = 0
        self._used = 0

    def rewind(self) -> None:
        """Hand out the same memory again: rows handed out before will be overwritten."""
        self._block = self._used = 0

    def give_back(self, count: int) -> None:
        """Hand out the last so many rows again: those passed over take no memory."""
        self._used -= count

    def rows(self, count: int) -> npt.NDArray[np.uint8]:
        """Memory for rows, one a line; what is in it is not defined."""
        if self._block < len(self._blocks) and self._used + count > len(self._blocks[self._block]):
            self._block, self._used = self._block + 1, 0
        if self._block == len(self._blocks):
            self._blocks.append(np.empty((max(count, BLOCK_ROWS), ROW_LENGTH), np.uint8))
        elif count > len(self._blocks[self._block]):
            self._blocks[self._block] = np.empty((count, ROW_LENGTH), np.uint8)
        begin, self._used = self._used, self._used + count
        return self._blocks[self._block][begin : self._used]
