"""A sender on one CPU: `python -m tidegate_lab.sender CPU SENDERS`, in the namespace that it is to send from.

SENDERS is the descriptor of the map of `tidegate_lab.algorithms`. A client says in one line which algorithm it wants
and how many bytes, 0: until it leaves. As each connection ends, one line of JSON tells of it: see `Told`.
"""

import json
import os
import socket
import struct
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Final

from tidegate_lab.algorithms import ALGORITHMS, sender

PORT: Final = 9000
READY: Final = "ready"
_EVERY_S: Final = 0.02
_BLOCK: Final = bytes(1 << 17)
# include/uapi/linux/tcp.h: struct tcp_info as far as tcpi_data_segs_out, and struct tcp_bbr_info's first three.
_TCP_CC_INFO: Final = 26
_INFO: Final = struct.Struct("=16xI4xI72xI52xI")
_BBR: Final = struct.Struct("=3I")


@dataclass(frozen=True, slots=True)
class Told:
    """What the sender saw of a connection.

    Attributes:
        segments: with data, those sent again included.
        retransmitted: those sent again.
        shares: bytes in flight over bandwidth x min_rtt, each 20 ms; none where the algorithm estimates neither.
        acks: acknowledgements that one of the experiment's algorithms saw.
        raised: those of them upon which it raised pacing.
    """

    segments: int
    retransmitted: int
    shares: list[float]
    acks: int
    raised: int


@dataclass(frozen=True, slots=True)
class _Look:
    mss: int
    unacked: int
    retransmitted: int
    segments: int

    @classmethod
    def at(cls, connection: socket.socket) -> "_Look":
        return cls(*_INFO.unpack(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size)))


def main(cpu: str, senders: str) -> None:
    """Serve for ever."""
    os.sched_setaffinity(0, {int(cpu)})
    listener = socket.create_server(("", PORT))
    print(READY, flush=True)
    while True:
        threading.Thread(target=_serve, args=(listener.accept()[0], int(senders)), daemon=True).start()


def _serve(connection: socket.socket, senders: int) -> None:
    with connection:
        algorithm, size = connection.makefile().readline().split()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
        shares: list[float] = []
        over = threading.Event()
        sampling = threading.Thread(target=_sample, args=(connection, algorithm, senders, shares, over))
        sampling.start()
        with suppress(OSError):  # the client has left
            _send(connection, int(size))
        over.set()
        sampling.join()
        last = _Look.at(connection)
        known = sender(senders, connection.fileno()) if algorithm in ALGORITHMS else None
        acks, raised = (known.acks, known.raised) if known else (0, 0)
        told = Told(last.segments, last.retransmitted, shares, acks, raised)
    print(json.dumps(asdict(told)), flush=True)


def _send(connection: socket.socket, size: int) -> None:
    if size:
        connection.sendall(bytes(size))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)  # until it is there
    while not size:
        connection.sendall(_BLOCK)


def _sample(
    connection: socket.socket, algorithm: str, senders: int, shares: list[float], over: threading.Event
) -> None:
    while not over.wait(_EVERY_S):
        path = _path(connection, algorithm, senders)
        if path:
            look = _Look.at(connection)
            shares.append(look.unacked * look.mss / path)


def _path(connection: socket.socket, algorithm: str, senders: int) -> float:
    """Bandwidth x min_rtt as the algorithm estimates them, bytes; 0: it does not."""
    if algorithm in ALGORITHMS:
        known = sender(senders, connection.fileno())
        return known.path if known else 0
    if algorithm == "bbr":
        low, high, min_rtt_us = _BBR.unpack(
            connection.getsockopt(socket.IPPROTO_TCP, _TCP_CC_INFO, _BBR.size)
        )
        return float((high << 32 | low) * min_rtt_us / 1e6)
    return 0


if __name__ == "__main__":
    main(*sys.argv[1:])
