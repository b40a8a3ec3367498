"""The service manager is told how the daemon is: sd_notify(3) by hand, which is one datagram."""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
ALIVE: Final = "WATCHDOG=1"


def notify(*lines: str, environment: Mapping[str, str] = os.environ) -> None:
    """Send assignments such as `READY=1`, if a service manager listens; one that does not is no reason to stop."""
    address = environment.get("NOTIFY_SOCKET", "")
    if address[:1] not in {"/", "@"}:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.setblocking(False)
        channel.sendto("\n".join(lines).encode(), address.replace("@", "\0", 1))


def watchdog_ns(environment: Mapping[str, str] = os.environ, pid: int | None = None) -> int | None:
    """How long the service manager waits for a sign of life, nanoseconds; None: it does not."""
    microseconds = environment.get("WATCHDOG_USEC", "")
    meant = environment.get("WATCHDOG_PID", "")
    if not microseconds.isdecimal() or (meant and meant != str(pid or os.getpid())):
        return None
    return int(microseconds) * 1000 or None
