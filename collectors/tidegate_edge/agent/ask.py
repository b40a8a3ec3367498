"""A command asks the daemon, where one runs."""

import os
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

from tidegate_edge.errors import BAD_INPUT, MISSING_PART, Failure

from .protocol import MAX_ANSWER_BYTES, Answer, Document, answer_of, request_line

PATIENCE_S: Final = 120
_CHUNK: Final = 1 << 16
_TIMEVAL: Final = struct.Struct("@ll")


def ask(
    path: Path, command: str, arguments: Document | None = None, file: Path | None = None
) -> Answer | None:
    """The daemon's answer, None where no daemon listens.

    Args:
        path: of the daemon's socket.
        command: its name.
        arguments: of the command.
        file: sent along, opened with the rights of this process.

    Raises:
        Failure: the file can't be opened, or the daemon does not let us in or does not answer.
    """
    connection = _connect(path)
    if connection is None:
        return None
    with connection:
        try:
            return _exchange(connection, command, arguments or {}, file)
        except (OSError, ValueError) as error:
            raise Failure(
                f"{path}: the daemon gave no answer: {error}",
                help="`systemctl status tidegate-agent` says how it is; the kernel keeps what it holds",
                exit_code=MISSING_PART,
            ) from error


def need(path: Path, command: str, arguments: Document | None = None) -> Answer:
    """The daemon's answer, of a command that only a daemon can do.

    Raises:
        Failure: as `ask`, and where no daemon listens.
    """
    answer = ask(path, command, arguments)
    if answer is None:
        raise no_daemon(path, command)
    return answer


def no_daemon(path: Path, command: str) -> Failure:
    """The failure that says so, and the way out."""
    return Failure(
        f"{path}: no daemon listens there, and `{command}` needs one",
        help="start it: `systemctl start tidegate-agent`, or name its socket with --socket",
        exit_code=MISSING_PART,
    )


def _connect(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    # Of a socket with Python's own timeout, connect fails at once where many others wait.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIMEVAL.pack(PATIENCE_S, 0))
    try:
        if not path.exists():
            connection.close()
            return None
        connection.connect(str(path))
        connection.settimeout(PATIENCE_S)
    except (FileNotFoundError, ConnectionRefusedError):  # a daemon that was killed leaves its socket behind
        connection.close()
        return None
    except OSError as error:
        connection.close()
        raise Failure(
            f"{path}: {error.strerror or error}",
            help="run it as root, or as a member of the socket's group",
            exit_code=MISSING_PART,
        ) from error
    return connection


def _exchange(connection: socket.socket, command: str, arguments: Document, file: Path | None) -> Answer:
    if file is None:
        connection.sendall(request_line(command, arguments))
    else:
        _send_with(connection, request_line(command, {**arguments, "name": str(file)}), file)
    received = bytearray()
    while not received.endswith(b"\n"):
        data = connection.recv(_CHUNK)
        if not data:
            raise ValueError("it closed the connection")
        received += data
        if len(received) > MAX_ANSWER_BYTES:
            raise ValueError(f"more than {MAX_ANSWER_BYTES} bytes")
    return answer_of(bytes(received))


def _send_with(connection: socket.socket, line: bytes, file: Path) -> None:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}", exit_code=BAD_INPUT) from error
    try:
        rest = line[socket.send_fds(connection, [line], [descriptor]) :]
        if rest:  # to send nothing fails too, once the daemon has answered and closed
            connection.sendall(rest)
    finally:
        with suppress(OSError):
            os.close(descriptor)
