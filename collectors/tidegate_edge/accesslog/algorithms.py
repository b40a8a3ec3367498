"""The congestion control of logged connections, asked of their sockets as long as they are there."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from tidegate_edge.sockets.addresses import FULL
from tidegate_edge.sockets.arena import Arena
from tidegate_edge.sockets.reader import Reader
from tidegate_edge.sockets.rows import Origin

from .line import Transfer

_ALL: Final = Origin("", "", FULL)


class Algorithms:
    """Looks connections up in the kernel's table.

    Args:
        reader: of the network namespace that the server runs in.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader: Final = reader
        self._arena: Final = Arena()

    def of(self, transfers: Sequence[Transfer]) -> list[str]:
        """The algorithm's name for each transfer, empty where its connection is gone.

        Raises:
            Failure: the kernel can't be read.
        """
        if not transfers:
            return []
        ports = np.unique([transfer.remote_port for transfer in transfers])
        known = {}
        for part in self._reader.poll(_ALL, self._arena):
            for row in part.rows[np.isin(part.rows["remote_port"], ports)]:
                ends = (row["remote_address"].item(), int(row["remote_port"]), int(row["local_port"]))
                known[ends] = row["congestion_control"].decode("ascii", "replace")
        return [
            known.get((each.remote_address.to_bytes(16, "big"), each.remote_port, each.local_port), "")
            for each in transfers
        ]
