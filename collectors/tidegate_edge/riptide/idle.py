"""Whether the kernel takes a window away from a connection that was idle."""

from pathlib import Path
from typing import Final

SLOW_START_AFTER_IDLE: Final = Path("/proc/sys/net/ipv4/tcp_slow_start_after_idle")


def restarts_after_idle(path: Path = SLOW_START_AFTER_IDLE) -> bool | None:
    """Whether a connection that was idle starts slowly again; None where the kernel does not say.

    With 1, its default, the kernel halves the window of a connection for each retransmission timeout that it was
    idle, down to the initial window (RFC 2861, section 3.1): what the connection had reached is lost, what was
    learned stays. Only the role writes it.
    """
    try:
        return path.read_text(encoding="ascii").strip() == "1"
    except OSError:
        return None
