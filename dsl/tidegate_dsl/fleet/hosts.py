"""Ansible's host ranges: `edge[01:20]`, `rack[a:d]`, with a step as third part."""

import re
from typing import Final

_RANGE: Final = re.compile(r"\[([0-9]+|[a-zA-Z]):([0-9]+|[a-zA-Z])(?::([0-9]+))?\]")
_MOST: Final = 100_000  # more hosts than any fleet of ours; a slip like [1:99999999] must not fill the memory


def expand(pattern: str) -> list[str]:
    """The hosts that a pattern names; ends are inclusive and leading zeros give the width, as in Ansible.

    Raises:
        ValueError: a range that runs backwards, mixes letters and digits, or names too many hosts.
    """
    match = _RANGE.search(pattern)
    if match is None:
        return [pattern]
    low, high, step = match.group(1), match.group(2), int(match.group(3) or 1)
    if low.isdigit() != high.isdigit() or step == 0 or len(low + high) > 20:
        raise ValueError(f"`{match.group()}` is no range of hosts")
    first, last = (int(low), int(high)) if low.isdigit() else (ord(low), ord(high))
    if last < first or (last - first) // step >= _MOST:
        raise ValueError(f"`{match.group()}` is no range of hosts")
    width = len(low) if low.startswith("0") else 0
    parts = [
        f"{number:0{width}d}" if low.isdigit() else chr(number) for number in range(first, last + 1, step)
    ]
    hosts = [
        f"{pattern[: match.start()]}{part}{rest}" for rest in expand(pattern[match.end() :]) for part in parts
    ]
    if len(hosts) > _MOST:
        raise ValueError(f"`{pattern}` names more than {_MOST} hosts")
    return hosts
