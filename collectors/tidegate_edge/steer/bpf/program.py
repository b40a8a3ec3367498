"""The steering program: which variant this kernel takes, and its place in the cgroup."""

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tidegate_edge.libbpf import descriptors
from tidegate_edge.libbpf.objects import Loaded, load

from .held import NEEDS, Unavailable
from .layout import LAYOUT
from .pins import Pin, Pins

OBJECT: Final = Path(__file__).with_name("steer.bpf.o")
VARIANTS: Final = ("queued", "acked")  # what it counts; the best first
MAPS: Final[Mapping[Pin, str]] = {
    "policy": f"policy_{LAYOUT}",
    "counters": f"counters_{LAYOUT}",
    "connections": f"connections_{LAYOUT}",
}
"""By the name of the pin, the name in the object and the kernel."""

Tell = Callable[[str], None]
"""Takes a line for people."""


def load_best(reuse: Mapping[str, int], tell: Tell) -> tuple[Loaded, str]:
    """The best variant that this kernel takes, and its name.

    Args:
        reuse: descriptors of the maps that it shall use.
        tell: is told why it is not the best, if so.

    Raises:
        Unavailable: it takes none, and why.
    """
    names = {variant: f"steer_{variant}" for variant in VARIANTS}
    *better, last = VARIANTS
    for variant in better:
        others = [name for other, name in names.items() if other != variant]
        try:
            return load(OBJECT, NEEDS, leave_out=others, reuse=reuse), variant
        except Unavailable as why:
            refused = why.message
    others = [name for other, name in names.items() if other != last]
    loaded = load(OBJECT, NEEDS, leave_out=others, reuse=reuse)
    tell(f"sizes are told by acknowledged bytes only, which is later: {refused}")
    return loaded, last


def put_in_place(program: int, cgroup: int, pins: Pins) -> None:
    """Let the program serve the cgroup by the pinned link, or by a new one where that does not lead there.

    Args:
        program: descriptor.
        cgroup: descriptor of its directory.
        pins: where the link is.

    Raises:
        OSError: the kernel refuses.
    """
    with pins.opened("link") as link:
        if link is not None and is_of(descriptors.link_info(link), os.fstat(cgroup).st_ino):
            try:
                descriptors.relink(link, program)
            except OSError as error:
                if error.errno != errno.ENOLINK:  # the cgroup went away meanwhile, and another came
                    raise
            else:
                return
        with descriptors.closing(descriptors.link_cgroup(program, cgroup)) as new:
            descriptors.pin(new, pins.path("link"))
        if link is not None:
            descriptors.detach(link)  # from its own cgroup, whoever else holds it


def is_of(link: descriptors.LinkInfo, cgroup: int) -> bool:
    """Whether a link is a sock_ops program's with this cgroup (its inode's number, cgroup_id())."""
    return (link.kind, link.attach_type, link.cgroup) == (
        descriptors.LINK_TYPE_CGROUP,
        descriptors.ATTACH_CGROUP_SOCK_OPS,
        cgroup,
    )
