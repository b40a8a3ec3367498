"""Policies as large as a benchmark asks for."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_EXAMPLE: Final = ROOT / "dsl" / "examples" / "edge.tide"
_ONCE: Final = ("learn", "initcwnd", "experiment")  # blocks of which a POP takes one


def large_policy(lines: int) -> str:
    """The example's blocks again and again under other names, until there are so many lines."""
    head, *blocks = _EXAMPLE.read_text(encoding="utf-8").strip().split("\n\n")
    repeated = [block for block in blocks if not re.search(rf"^({'|'.join(_ONCE)}) ", block, re.MULTILINE)]
    names = re.findall(r"^(?:select|apply|guard) (\w+) ", "\n".join(repeated), re.MULTILINE)
    head = re.sub(r'inventory ".*?"', f'inventory "{ROOT / "inventory"}"', head)
    made, count, number = [head, *blocks], head.count("\n") + 2, 0
    count += sum(block.count("\n") + 2 for block in blocks)
    while count < lines:
        number += 1
        for block in repeated:
            named = re.sub(rf"\b({'|'.join(names)})\b", rf"\1_{number}", block)
            named = re.sub(r'^test "(.*)"', rf'test "\1 ({number})"', named, flags=re.MULTILINE)
            made.append(named)
            count += named.count("\n") + 2
    return "\n\n".join(made) + "\n"
