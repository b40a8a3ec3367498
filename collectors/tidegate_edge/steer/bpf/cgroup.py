"""Where this host's file systems of BPF and of cgroups of version 2 are."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from .held import NEEDS, Unavailable

MOUNTS: Final = Path("/proc/self/mountinfo")


class Mount(NamedTuple):
    """A mounted file system: what of it is mounted, where, and its kind."""

    root: str
    point: Path
    kind: str


def mounts(lines: Iterable[str]) -> Iterator[Mount]:
    """The mounts of /proc/PID/mountinfo (proc_pid_mountinfo(5)), in the order they were made."""
    for line in lines:
        before, _, after = line.partition(" - ")
        root, point = before.split(" ")[3:5]
        yield Mount(_unescape(root), Path(_unescape(point)), after.split(" ")[0])


def root_of_cgroups() -> Path:
    """Where the root of the hierarchy of version 2 is mounted, also beside that of version 1.

    Raises:
        Unavailable: nowhere.
    """
    for mount in mounts(MOUNTS.read_text().splitlines()):
        if mount.kind == "cgroup2" and mount.root == "/":
            return mount.point
    raise Unavailable("cgroups of version 2 are not mounted", NEEDS)


def require_bpf_files(directory: Path) -> None:
    """Whether programs can be pinned under a directory, which need not be there yet.

    Raises:
        Unavailable: it would lie in a file system of another kind.
    """
    covering = [
        mount for mount in mounts(MOUNTS.read_text().splitlines()) if directory.is_relative_to(mount.point)
    ]
    # Of mounts at one point the last covers the others.
    nearest = max(enumerate(covering), key=lambda each: (len(each[1].point.parts), each[0]))[1]
    if nearest.kind != "bpf":
        raise Unavailable(
            f"{directory} is not in a BPF file system: mount one by `mount -t bpf bpf /sys/fs/bpf`", NEEDS
        )


def open_cgroup(path: Path) -> int:
    """A descriptor of the cgroup's directory.

    Raises:
        Unavailable: there is none.
    """
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(f"cgroup {path}: {error.strerror}", NEEDS) from error


def _unescape(text: str) -> str:
    """Spaces, tabs, line ends and backslashes are octal there."""
    for code in ("040", "011", "012", "134"):
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text
