"""A server in a namespace, from the moment that it listens until the block is left."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tidegate_lab.namespaces import run

_PATIENCE_S: Final = 20.0
_LAST_WORDS: Final = 2000  # bytes


@contextmanager
def service(namespace: str, *argv: str, port: int) -> Iterator[None]:
    """Run `argv` in `namespace`; the last of what it prints is a note on an exception that leaves the block.

    Args:
        namespace: its name.
        argv: the server, which stays in the foreground and ends on SIGTERM.
        port: the TCP port that it will listen on.

    Raises:
        RuntimeError: it ended, or does not listen after 20 seconds.
    """
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(["ip", "netns", "exec", namespace, *argv], stdout=log, stderr=log) as server,
    ):
        try:
            _await_listening(server, namespace, port)
            yield
        except BaseException as error:
            log.seek(0)
            error.add_note(f"{argv[0]}: {log.read()[-_LAST_WORDS:].decode(errors='replace')}")
            raise
        finally:
            server.terminate()


def _await_listening(server: subprocess.Popen[bytes], namespace: str, port: int) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not run("ip", "netns", "exec", namespace, "ss", "-Hltn", f"sport = :{port}"):
        if server.poll() is not None:
            raise RuntimeError(f"the server ended with code {server.returncode}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"nothing listens on port {port} after {_PATIENCE_S:.0f} s")
        time.sleep(0.02)
