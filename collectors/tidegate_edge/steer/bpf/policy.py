"""A generation's settings as a trie of the kernel, swapped in whole."""

import os
import sys
from collections.abc import Mapping
from typing import Final

from tidegate_edge.errors import Failure
from tidegate_edge.libbpf import maps
from tidegate_edge.libbpf.descriptors import MAP_TYPE_LPM_TRIE
from tidegate_edge.steer.claims import Settings
from tidegate_edge.steer.prefix import Prefix

from . import layout
from .held import Counters

TRIE_NAME: Final = f"trie_{layout.LAYOUT}"
MAX_PREFIXES: Final = 1 << 16  # as in steer.bpf.c; one names the generation

_SLOT: Final = bytes(4)
_NO_CONNECTION: Final = Counters()


def make_trie(generation: str, settings: Mapping[Prefix, Settings], *, per_request: bool) -> int:
    """A new trie, filled and then frozen: nobody changes a generation in place. Returns its descriptor.

    Raises:
        Failure: settings that the kernel can't hold.
        OSError: the kernel refuses.
    """
    if len(settings) >= MAX_PREFIXES:
        raise Failure(
            f"{len(settings)} prefixes are more than the {MAX_PREFIXES - 1} of a generation",
            help="lower the policy's limits",
        )
    name_key, name_value = layout.encode_generation(generation)
    stated: dict[Settings, bytes] = {}
    for each in settings.values():
        if each not in stated:
            stated[each] = layout.encode_settings(each, generation, per_request=per_request)
    keys = [layout.encode_prefix(prefix) for prefix in settings]
    values = [key + stated[each] for key, each in zip(keys, settings.values(), strict=True)]
    trie = maps.create(MAP_TYPE_LPM_TRIE, TRIE_NAME, layout.KEY_SIZE, layout.VALUE_SIZE, MAX_PREFIXES)
    try:
        maps.fill(trie, b"".join([*keys, name_key]), b"".join([*values, name_value]), len(keys) + 1)
        maps.freeze(trie)
    except OSError:
        os.close(trie)
        raise
    return trie


def swap_in(policy: int, trie: int) -> None:
    """Put a trie into the policy's one slot: connections find the one before or this one.

    Raises:
        OSError: the kernel refuses.
    """
    maps.put(policy, _SLOT, trie.to_bytes(4, sys.byteorder))


def in_use(policy: int) -> int | None:
    """Identity of the trie in the policy's slot.

    Raises:
        OSError: the kernel refuses.
    """
    found = maps.look_up(policy, _SLOT, 4)
    return int.from_bytes(found, sys.byteorder) if found else None


def read_generation(trie: int) -> str | None:
    """The name of the trie's generation.

    Raises:
        OSError: the kernel refuses.
    """
    key, _ = layout.encode_generation("?")
    found = maps.look_up(trie, key, layout.VALUE_SIZE)
    return layout.decode_settings(found).generation if found else None


def read_settings(trie: int) -> dict[Prefix, Settings]:
    """All settings of a trie, in its order.

    Raises:
        OSError: the kernel refuses.
    """
    found = (layout.decode_settings(value) for _, value in maps.entries(trie))
    return {given.prefix: given.settings for given in found if given.prefix != layout.NO_CLIENT}


def read_counters(counters: int, settings: Mapping[Prefix, Settings]) -> dict[Prefix, Counters]:
    """The counters of these prefixes.

    Raises:
        OSError: the kernel refuses.
    """
    found = dict(maps.entries(counters))
    return {
        prefix: layout.decode_counters(value)
        if (value := found.get(layout.encode_prefix(prefix)))
        else _NO_CONNECTION
        for prefix in settings
    }


def forget_others(counters: int, settings: Mapping[Prefix, Settings]) -> None:
    """Remove the counters of prefixes that have settings no more.

    Raises:
        OSError: the kernel refuses.
    """
    counted = [key for key, _ in maps.entries(counters)]
    if not counted:
        return
    kept = {layout.encode_prefix(prefix) for prefix in settings}
    for key in counted:
        if key not in kept:
            maps.remove(counters, key)
