"""Congestion control algorithms that this kernel has, and may use here."""

import errno
import socket
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tidegate_edge.errors import MISSING_PART, Failure

SYSCTL: Final = Path("/proc/sys/net/ipv4")
DEFAULT: Final = SYSCTL / "tcp_congestion_control"
AVAILABLE: Final = SYSCTL / "tcp_available_congestion_control"
ALLOWED: Final = SYSCTL / "tcp_allowed_congestion_control"


def require_algorithms(names: Iterable[str]) -> None:
    """Refuse algorithms that the kernel has not.

    A socket asks for each, so that the kernel loads the module of one that it has not loaded yet.

    Raises:
        Failure: an algorithm is unknown; names those that are known.
    """
    unknown = [name for name in names if not _known(name)]
    if unknown:
        raise _unknown(unknown)


def require_default_allowed(name: str) -> None:
    """Refuse a default that the host forbids in this network namespace.

    The host's own namespace may set any; there alone the list of those allowed can be written.

    Raises:
        Failure: the algorithm is not in the host's list.
    """
    here_is_host = bool(ALLOWED.stat().st_mode & stat.S_IWUSR)
    if not here_is_host and name not in ALLOWED.read_text().split():
        raise _forbidden(name)


def read_default() -> str:
    """The algorithm that new sockets of this namespace start with."""
    return DEFAULT.read_text().strip()


def write_default(name: str) -> None:
    """Set the algorithm that new sockets of this namespace start with.

    Raises:
        Failure: the kernel does not know the algorithm or refuses it, or /proc/sys is read-only.
    """
    try:
        DEFAULT.write_text(name)
    except PermissionError as error:
        raise _forbidden(name) from error
    except FileNotFoundError as error:  # the kernel's answer to a name that it does not know
        raise _unknown([name]) from error
    except OSError as error:
        raise Failure(
            f"net.ipv4.tcp_congestion_control: cannot be set to `{name}`: {error.strerror}",
            help="in a container, /proc/sys must be writable",
            exit_code=MISSING_PART,
        ) from error


def _known(name: str) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode("ascii"))
        except OSError as error:
            # EPERM: known, and restricted to those with CAP_NET_ADMIN.
            return error.errno == errno.EPERM
    return True


def _unknown(names: Sequence[str]) -> Failure:
    return Failure(
        f"the kernel has no congestion control algorithm `{'`, `'.join(names)}`; "
        f"net.ipv4.tcp_available_congestion_control is `{AVAILABLE.read_text().strip()}`",
        help=f"load its module (`modprobe tcp_{names[0]}`), or use one that is available",
        exit_code=MISSING_PART,
    )


def _forbidden(name: str) -> Failure:
    return Failure(
        f"this network namespace may not have `{name}` as its default: the host's "
        f"net.ipv4.tcp_allowed_congestion_control is `{ALLOWED.read_text().strip()}`",
        help=f"add `{name}` to net.ipv4.tcp_allowed_congestion_control on the host itself",
        exit_code=MISSING_PART,
    )
