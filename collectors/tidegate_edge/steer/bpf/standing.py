"""Whether what is pinned is whole: a stranger may have unpinned or replaced any of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tidegate_edge.libbpf.descriptors import aside, closing, link_info, map_info, program_info

from . import policy
from .held import Standing
from .pins import Pins, get_or_none
from .program import MAPS, VARIANTS, is_of

_TRIES: Final = 3  # a swap may come between two looks


def look(pins: Pins, cgroup: Path) -> Standing:
    """Compare the pins with each other and with the cgroup.

    Raises:
        OSError: what is pinned can't be read.
    """
    variant, detached = _attachment(pins, cgroup)
    with pins.opened("policy") as slot, opened_trie(pins, slot) as trie:
        generation = None if trie is None else policy.read_generation(trie)
        lost = trie is None and slot is not None and policy.in_use(slot) is not None
    unread = ["the settings in use are not pinned"] if lost else []
    return Standing(not detached, variant, generation, (*detached, *unread))


@contextmanager
def opened_trie(pins: Pins, slot: int | None) -> Iterator[int | None]:
    """The trie in use, closed at the end; None where there is none, or its pin is not there.

    Args:
        pins: where it is pinned, or beside that where a swap was cut short.
        slot: descriptor of the policy's map, or None.
    """
    used = None
    for _ in range(_TRIES):
        used = None if slot is None else policy.in_use(slot)
        for path in (pins.path("trie"), aside(pins.path("trie"))) if used else ():
            trie = get_or_none(path)
            if trie is None:
                continue
            with closing(trie):
                info = map_info(trie)
                if info.identity == used and info.name == policy.TRIE_NAME:
                    yield trie
                    return
    yield None


def _attachment(pins: Pins, cgroup: Path) -> tuple[str, list[str]]:
    """The program's variant, and what keeps new connections of the cgroup from going by the pinned maps."""
    missing = []
    with pins.opened("link") as link, pins.opened("program") as program:
        at = None if link is None else link_info(link)
        runs = None if program is None else program_info(program)
    if at is None:
        missing.append("the link is not pinned")
    elif not is_of(at, _identity(cgroup)):
        missing.append(f"the link is not that of cgroup {cgroup}")
    if runs is None:
        missing.append("the program is not pinned")
    elif at is not None and at.program != runs.identity:
        missing.append("the link's program is not the pinned one")
    for name in MAPS:
        with pins.opened(name) as found:
            if found is None:
                missing.append(f"{name} is not pinned")
            elif runs is not None and map_info(found).identity not in runs.maps:
                missing.append(f"{name} is not the program's")
    variant = runs.name.removeprefix("steer_") if runs else ""
    return (variant if variant in VARIANTS else ""), missing


def _identity(cgroup: Path) -> int:
    """cgroup_id(), or -1 where there is none."""
    try:
        return cgroup.stat().st_ino
    except OSError:
        return -1
