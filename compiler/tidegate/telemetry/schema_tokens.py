"""Forgets insert tokens whose rows never came, before an embedded store is opened.

ClickHouse notes a block's token in the table's deduplication log, and only then moves the block's part into place
(seen of 26.9 by strace: the write comes before the rename). A process that is killed between the two leaves a token
without rows, and the repeated insert, which carries the same token, would be dropped as a duplicate: the rows would
be lost. Replicated tables do both in one transaction of their Keeper, and need nothing of this.
"""

import os
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import Final

_LOGS: Final = "deduplication_logs"
# Partition, first and last block, level and, behind a mutation, its number (ClickHouse, MergeTreePartInfo).
_PART: Final = re.compile(r"(?P<partition>.+?)_(?P<first>\d+)_(?P<last>\d+)_\d+(?:_\d+)?")
_ADDED: Final = "1"  # MergeTreeDeduplicationOp::ADD

_Blocks = dict[str, tuple[list[int], list[int]]]


def forget_tokens_without_rows(directory: Path) -> int:
    """Take out of each table's deduplication log what names a part that is not there; returns how many lines.

    A part is there if it is, or one that it was merged into. One that has been dropped, by its TTL say, is not: its
    token is forgotten with its rows.

    Args:
        directory: of an embedded store that no process has open.

    Raises:
        OSError: a log cannot be read or written.
    """
    forgotten = 0
    for log in sorted(directory.glob(f"store/*/*/{_LOGS}/deduplication_log_*.txt")):
        text = log.read_text(errors="surrogateescape")
        lines = text.splitlines(keepends=True)
        blocks = _blocks(each.name for each in log.parents[1].iterdir())
        kept = [line for line in lines if line.endswith("\n") and not _is_empty(line, blocks)]
        if kept != lines:
            _replace(log, "".join(kept))
            forgotten += len(lines) - len(kept)
    return forgotten


def _blocks(names: Iterable[str]) -> _Blocks:
    """By partition, the first blocks of the parts in place, rising, and the highest last block up to each of them."""
    ranges: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for name in names:
        if not name.startswith("tmp") and (part := _PART.fullmatch(name)):
            ranges[part["partition"]].append((int(part["first"]), int(part["last"])))
    return {
        partition: (
            [first for first, _ in sorted(found)],
            list(accumulate((last for _, last in sorted(found)), max)),
        )
        for partition, found in ranges.items()
    }


def _is_empty(line: str, blocks: _Blocks) -> bool:
    """Whether a line of the log says that a part was added which is not there."""
    operation, _, rest = line.partition("\t")
    part = _PART.fullmatch(rest.partition("\t")[0])
    if operation != _ADDED or part is None:
        return False
    firsts, lasts = blocks.get(part["partition"], ([], []))
    place = bisect_right(firsts, int(part["first"]))
    return not place or lasts[place - 1] < int(part["last"])


def _replace(log: Path, text: str) -> None:
    """Write aside, then rename: a crash leaves the old log or the new one."""
    aside = log.with_name(f".{log.name}.new")
    with aside.open("w", errors="surrogateescape") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(log)
