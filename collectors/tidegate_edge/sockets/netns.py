"""Network namespaces: which is which, and a step into one and back."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tidegate_edge.errors import BAD_INPUT, MISSING_PART, Failure

NAMED: Final = Path("/run/netns")
OWN: Final = Path("/proc/thread-self/ns/net")
_CLONE_NEWNET: Final = 0x40000000  # include/uapi/linux/sched.h


def path_of(netns: str | None) -> Path:
    """The file that stands for a namespace: of a name of `ip netns`, of a path, or of the calling thread's own."""
    if netns is None:
        return OWN
    return Path(netns) if "/" in netns else NAMED / netns


def inode_of(netns: str | None) -> int:
    """The number by which the kernel tells namespaces apart.

    Raises:
        Failure: there is no such namespace, or its name is empty.
    """
    if netns == "":
        raise Failure(
            "the name of the network namespace is empty",
            help="name one of `ip netns list`; without `--netns` it is that of the collector",
        )
    try:
        return path_of(netns).stat().st_ino
    except OSError as error:
        raise _missing(netns) from error


@contextmanager
def inside(netns: str | None) -> Iterator[None]:
    """Let the calling thread, and no other, be in a namespace. Takes CAP_SYS_ADMIN unless it is its own.

    Raises:
        Failure: there is no such namespace, or it can't be entered.
    """
    if netns is None:
        yield
        return
    there = _opened(path_of(netns), netns)
    try:
        back = _opened(OWN, "of the collector")
    except Failure:
        os.close(there)
        raise
    try:
        _enter(there, netns)
        try:
            yield
        finally:
            _enter(back, "of the collector")
    finally:
        os.close(there)
        os.close(back)


def _opened(path: Path, name: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise _missing(name) from error
    except OSError as error:
        raise Failure(f"namespace `{name}`: {error.strerror}", exit_code=MISSING_PART) from error


def _enter(descriptor: int, name: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET):
        raise Failure(
            f"namespace `{name}`: {os.strerror(ctypes.get_errno())}",
            help="entering a network namespace takes CAP_SYS_ADMIN",
            exit_code=MISSING_PART,
        )


def _missing(netns: str | None) -> Failure:
    return Failure(
        f"no network namespace `{netns}`", help="`ip netns list` shows those that exist", exit_code=BAD_INPUT
    )
