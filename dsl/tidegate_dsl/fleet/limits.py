"""The limits that a policy may not pass; they live beside the guard's rules, and reviews of them are their own."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidegate_dsl.diagnostics import InputError

from .documents import Document


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit, and where it is set, as `path:line`."""

    value: int
    origin: str


@dataclass(frozen=True, slots=True)
class Algorithms:
    """The congestion control algorithms that a policy may name, and where they are listed, as `path:line`."""

    names: tuple[str, ...]
    origin: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What the checker reads of a limits file. Prefix lengths are the widest prefixes that a policy may treat."""

    initcwnd_max_segments: Limit
    initrwnd_max_segments: Limit
    prefixes_per_pop_max: Limit
    new_prefixes_per_run_max: Limit
    prefix_length_min_ipv4: Limit
    prefix_length_min_ipv6: Limit
    algorithms: Algorithms


_NUMBERS: Final = (
    "initcwnd_max_segments",
    "initrwnd_max_segments",
    "prefixes_per_pop_max",
    "new_prefixes_per_run_max",
    "prefix_length_min_ipv4",
    "prefix_length_min_ipv6",
)
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_ALGORITHM: Final = re.compile(
    r"[a-z][a-z0-9_]{0,14}"
)  # linux/tcp.h: TCP_CA_NAME_MAX 16, with the closing zero


def read_limits(path: Path) -> Limits:
    """The limits of a YAML file with the mapping `limits`; keys that only other readers know are left to them.

    Raises:
        InputError: the file can not be read, or a limit is missing or no number.
    """
    document = Document(path)
    top = {key: value for key, _, value in document.pairs(document.root, "the file")} if document.root else {}
    if "limits" not in top:
        raise InputError(f"{path} has no `limits`", help="give a file with the mapping `limits:`")
    values = {key: value for key, _, value in document.pairs(top["limits"], "`limits`")}
    missing = [key for key in (*_NUMBERS, "algorithms") if key not in values]
    if missing:
        raise document.fault(top["limits"], f"`limits` lacks {', '.join(f'`{key}`' for key in missing)}")
    numbers: dict[str, Limit] = {}
    for key in _NUMBERS:
        text = document.text(values[key], f"`{key}`")
        if not _NUMBER.fullmatch(text):
            raise document.fault(values[key], f"`{key}` must be a whole number, not `{text}`")
        numbers[key] = Limit(int(text), document.at(values[key]))
    algorithms = document.items(values["algorithms"], "`algorithms`")
    for name, node in algorithms:
        if not _ALGORITHM.fullmatch(name):
            raise document.fault(node, f"`{name}` is no name of a congestion control algorithm")
    listed = Algorithms(tuple(name for name, _ in algorithms), document.at(values["algorithms"]))
    return Limits(algorithms=listed, **numbers)
