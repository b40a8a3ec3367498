"""Loads files of socket rows into socket_samples, each block once.

The file is read to its end before anything of it is loaded. On the way its first blocks are decoded, as many as there
is memory for; the others are read again, each while the engine takes the one before.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from clickhouse_connect.driver.client import Client

from tidegate.errors import Failure
from tidegate.telemetry.block import Block
from tidegate.telemetry.decode import check, decode
from tidegate.telemetry.insertion import TABLE, insert_rows
from tidegate.telemetry.native import NativeBlock
from tidegate.telemetry.record_ingest import MAX_DAYS, Loaded

Reader = Callable[[Path], Iterator[Block]]
_THREADS: Final = 2  # one waits for the engine, one hashes; this one decodes


@dataclass(frozen=True, slots=True)
class _Verified:
    """A block of a file that was read to its end: what it holds, the token made of that, and its admitted rows."""

    digest: str
    token: str
    rows: int


@dataclass(frozen=True, slots=True)
class _Load:
    """One file on its way, and the memory that its blocks take in turn."""

    client: Client
    path: Path
    read: Reader
    now_ns: int
    threads: ThreadPoolExecutor
    blocks: tuple[NativeBlock, NativeBlock]


def ingest_rows(client: Client, path: Path, read: Reader, on_progress: Callable[[int, int], None]) -> Loaded:
    """Add a file's rows to the store, if they are not there yet.

    Args:
        client: of an open and migrated store.
        path: of the file.
        read: its reader.
        on_progress: called with rows done and rows in all.

    Raises:
        Failure: unreadable, damaged (the message names the byte), changed meanwhile, or over too many days.
    """
    with NativeBlock() as first, NativeBlock() as second, ThreadPoolExecutor(_THREADS) as threads:
        load = _Load(client, path, read, time.time_ns(), threads, (first, second))
        verified, left_out = _verify(load)
        total = sum(block.rows for block in verified)
        known = _known(client, [block.token for block in verified])
        added = done = 0
        on_progress(0, total)
        if not known.issuperset(block.token for block in verified):
            for block in _inserted(load, verified, known):
                added += 0 if block.token in known else block.rows
                done += block.rows
                on_progress(done, total)
    return Loaded(total, added, left_out)


def _verify(load: _Load) -> tuple[list[_Verified], dict[str, int]]:
    """Read the whole file; its first blocks are decoded on the way."""
    found: list[_Verified] = []
    left_out: Counter[str] = Counter()
    days: set[int] = set()
    for index, block in enumerate(load.read(load.path)):
        digest = load.threads.submit(block.digest)
        if index < len(load.blocks):
            judged = decode(block.rows, load.blocks[index], load.now_ns)
        else:
            judged = check(block.rows, load.now_ns)
        left_out.update(block.left_out)
        left_out.update(judged.left_out)
        days |= judged.days
        found.append(_Verified(digest.result(), _token(index, digest.result()), judged.count))
    if len(days) > MAX_DAYS:
        raise Failure(
            f"{load.path}: its rows lie on {len(days)} different days, more than {MAX_DAYS}",
            help="look at the clock of the host that wrote it, or split the file by days",
        )
    return found, dict(left_out)


def _inserted(load: _Load, verified: list[_Verified], known: set[str]) -> Iterator[_Verified]:
    """Each block, in order, as soon as it is in the store; the next one is decoded meanwhile."""
    again = islice(load.read(load.path), len(load.blocks), None)
    before: tuple[_Verified, Future[None]] | None = None
    for index, block in enumerate(verified):
        into = load.blocks[index % len(load.blocks)]
        if index >= len(load.blocks):
            found = next(again, None)
            if block.token not in known:
                _decode_again(load, found, block, into)
        if before is not None:
            before[1].result()
            yield before[0]
            before = None
        if block.token in known:
            yield block
        else:
            before = block, load.threads.submit(_insert, load, into, block)
    if before is not None:
        before[1].result()
        yield before[0]


def _decode_again(load: _Load, found: Block | None, expected: _Verified, into: NativeBlock) -> None:
    digest = load.threads.submit(found.digest) if found is not None else None
    if found is not None:
        decode(found.rows, into, load.now_ns)
    if digest is None or digest.result() != expected.digest:
        raise Failure(f"{load.path}: changed while it was read", help="load it when nothing writes to it")


def _token(index: int, digest: str) -> str:
    return hashlib.sha256(f"{TABLE}/{index}/{digest}".encode()).hexdigest()


def _known(client: Client, tokens: list[str]) -> set[str]:
    rows = client.query(
        "SELECT DISTINCT toString(token) FROM ingested_blocks WHERE token IN {tokens:Array(String)}",
        parameters={"tokens": tokens},
    ).result_rows
    return {str(row[0]) for row in rows}


def _insert(load: _Load, block: NativeBlock, verified: _Verified) -> None:
    """The block, then its entry in the ledger: after a crash between the two the token makes the insert a no-op."""
    if verified.rows:
        insert_rows(load.client, block, verified.token)
    load.client.command(
        "INSERT INTO ingested_blocks (token, file, added) VALUES ({token:String}, {file:String}, {added:UInt64})",
        parameters={"token": verified.token, "file": load.path.name, "added": verified.rows},
    )
