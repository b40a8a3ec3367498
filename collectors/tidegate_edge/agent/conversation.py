"""One connection to the agent's socket: never awaited, bounded in bytes and in time."""

import os
import socket
from typing import Final

from tidegate_edge.errors import BAD_INPUT, Failure

from .peer import Peer
from .protocol import MAX_REQUEST_BYTES, Answer, Request, answer_line, request_of

PATIENCE_NS: Final = 30 * 10**9


class Conversation:
    """Receives a request, then sends an answer.

    Args:
        connection: accepted.
        peer: who is at its other end.
        now_ns: the time, from which the peer's patience counts.
    """

    def __init__(self, connection: socket.socket, peer: Peer, now_ns: int) -> None:
        connection.setblocking(False)
        self.connection: Final = connection
        self.peer: Final = peer
        self.ends_ns: Final = now_ns + PATIENCE_NS
        self._received = b""
        self._left = memoryview(b"")
        self._descriptor: int | None = None

    def fileno(self) -> int:
        """Of the connection."""
        return self.connection.fileno()

    def receive(self) -> Request | None:
        """The request, None where it is not whole yet.

        Raises:
            Failure: it is none, or too long.
            EOFError: the peer has gone.
            OSError: the connection is broken.
        """
        try:
            data, descriptors, _, _ = socket.recv_fds(
                self.connection, MAX_REQUEST_BYTES, 1, socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return None
        for descriptor in descriptors:
            if self._descriptor is None:
                self._descriptor = descriptor
            else:
                os.close(descriptor)
        if not data:
            raise EOFError
        self._received += data
        line, end, _ = self._received.partition(b"\n")
        if len(line) > MAX_REQUEST_BYTES:
            raise Failure(f"a request has {MAX_REQUEST_BYTES} bytes at most", exit_code=BAD_INPUT)
        return request_of(line, self._descriptor) if end else None

    def answer(self, answer: Answer) -> None:
        """Have this sent; `send` does it."""
        self._left = memoryview(answer_line(answer))

    def send(self) -> bool:
        """Send what the peer takes now; says whether that was all.

        Raises:
            OSError: the connection is broken.
        """
        try:
            self._left = self._left[self.connection.send(self._left, socket.MSG_NOSIGNAL) :]
        except BlockingIOError:
            return False
        return not self._left

    def close(self) -> None:
        """Close the connection, and the file that came by it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self.connection.close()
