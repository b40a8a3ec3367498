"""The directory of the BPF file system in which everything of ours is pinned."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from tidegate_edge.libbpf.descriptors import aside, closing, get

Pin: TypeAlias = Literal["link", "program", "policy", "trie", "counters", "connections"]
PINS: Final[tuple[Pin, ...]] = ("link", "program", "policy", "trie", "counters", "connections")


@dataclass(frozen=True, slots=True)
class Pins:
    """What is pinned, by name.

    Attributes:
        directory: in a BPF file system.
    """

    directory: Path

    def path(self, name: Pin) -> Path:
        """Where it is pinned."""
        return self.directory / name

    @contextmanager
    def opened(self, name: Pin) -> Iterator[int | None]:
        """Its descriptor, closed at the end; None where it is not pinned."""
        descriptor = get_or_none(self.path(name))
        if descriptor is None:
            yield None
            return
        with closing(descriptor):
            yield descriptor

    def clear(self) -> None:
        """Unpin all of ours, and remove the directory unless it holds what is not ours."""
        for name in PINS:
            for path in (self.path(name), aside(self.path(name))):
                path.unlink(missing_ok=True)
        if self.directory.is_dir() and not any(self.directory.iterdir()):
            self.directory.rmdir()


def get_or_none(path: Path) -> int | None:
    """A descriptor of what is pinned there, or None.

    Raises:
        OSError: it can't be had for another reason.
    """
    try:
        return get(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
