"""The agent's Unix socket, where it stands and who may open it."""

import os
import socket
from pathlib import Path
from typing import Final

from tidegate_edge.errors import MISSING_PART, Failure

_WAITING: Final = 128
_OPENED_BY: Final = 0o660  # owner and group; who asks what is checked by credentials


def listen(path: Path, group: int) -> socket.socket:
    """Listen at a path; a socket left there by a daemon that was killed is replaced.

    Args:
        path: of the socket; its directory is made.
        group: whose members may open it.

    Raises:
        Failure: it can't stand there.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    aside = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        aside.unlink(missing_ok=True)
        listener.bind(str(aside))
        os.chown(aside, -1, group)
        aside.chmod(_OPENED_BY)
        listener.listen(_WAITING)
        aside.replace(path)
    except OSError as error:
        listener.close()
        raise Failure(
            f"{path}: the agent's socket can't stand there: {error.strerror or error}",
            help="name another place with --socket, of at most 100 characters",
            exit_code=MISSING_PART,
        ) from error
    return listener
