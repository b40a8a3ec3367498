"""Tidying up that happens however the owner ends, a `kill -9` included."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def afterwards(*command: str) -> Iterator[None]:
    """Run `command` when the block is left, or when this process ends inside it.

    A waiting shell holds the other end of a pipe: whatever closes ours sets it off. It has a session of its
    own, so that a Ctrl-C meant for us does not end it first.

    Raises:
        subprocess.CalledProcessError: the command failed.
    """
    argv = ["sh", "-c", 'cat >/dev/null; exec "$@"', "afterwards", *command]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True) as waiting:
        yield
    if waiting.returncode != 0:
        raise subprocess.CalledProcessError(waiting.returncode, command)
