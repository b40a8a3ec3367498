"""What a collector keeps from one part of a poll to the next: fresh pages for each would cost as much as decoding."""

from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate_edge.schemas.rows import ROW_LENGTH

from .layout import Known

# Some 2,400 sockets: enough to make a call of numpy cheap, and with their rows still in a processor's cache.
BUFFER_LENGTH: Final = 1 << 20


class Arena:
    """A receive buffer, and room for the rows of one part of a poll.

    Attributes:
        buffer: `BUFFER_LENGTH` bytes.
        layouts: of messages that were met.
    """

    def __init__(self) -> None:
        self.buffer: Final = bytearray(BUFFER_LENGTH)
        self.layouts: Final[Known] = {}
        self._rows: npt.NDArray[np.uint8] = np.empty((0, ROW_LENGTH), np.uint8)

    def rows(self, count: int) -> npt.NDArray[np.uint8]:
        """Memory for rows, one a line; what is in it is not defined, and handed out before it may have been."""
        if count > len(self._rows):
            self._rows = np.empty((count, ROW_LENGTH), np.uint8)
        return self._rows[:count]
