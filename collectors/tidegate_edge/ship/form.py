"""What rows look like on their way out."""

from collections.abc import Callable
from dataclasses import dataclass

from tidegate_edge.sockets.decode import Rows

Buffer = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Form:
    """An encoding of rows whose pieces may be written one behind the other.

    Attributes:
        encode: rows to bytes.
        whole_length: given a file's descriptor and size, how many of its bytes are whole rows. Raises
            ValueError, with what was found, if the file does not begin as this form does, or ends with
            what is no part of a row.
        for_people: it may be shown on a terminal.
    """

    encode: Callable[[Rows], Buffer]
    whole_length: Callable[[int, int], int]
    for_people: bool
