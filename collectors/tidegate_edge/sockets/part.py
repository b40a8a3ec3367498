"""A poll is a stream of parts: no more of it is in memory than one of them."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate_edge.schemas.rows import new_rows

from .decode import Rows

NO_ROWS: Final = new_rows(0)


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a poll; the last part has what was counted over all of it.

    Attributes:
        rows: finished. They lie in the arena: the next part overwrites them.
        damaged: messages, or rests of datagrams, that could not be read.
        left_out: sockets beyond the limit.
        retries: dumps that were repeated because the kernel lost or changed part of them.
        interrupted: the kernel marked the last dump as inconsistent too.
        passed_over: sockets that are excluded or not in the sample.
    """

    rows: Rows
    damaged: int = 0
    left_out: int = 0
    retries: int = 0
    interrupted: bool = False
    passed_over: int = 0


class Given:
    """The sockets whose rows a poll has given, so that a repeated walk gives only the others.

    Eight bytes a socket.
    """

    def __init__(self) -> None:
        self._cookies: list[npt.NDArray[np.uint64]] = []
        self.count = 0

    def add(self, rows: Rows) -> None:
        """Note the sockets of these rows."""
        self._cookies.append(rows["cookie"].copy())
        self.count += len(rows)

    def cookies(self) -> npt.NDArray[np.uint64]:
        """Those noted so far."""
        return np.concatenate(self._cookies) if self._cookies else np.empty(0, np.uint64)


def others(rows: Rows, cookies: npt.NDArray[np.uint64]) -> Rows:
    """The rows of other sockets than these."""
    return rows[~np.isin(rows["cookie"], cookies)] if len(cookies) else rows
