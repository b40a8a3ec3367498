"""Loads files of socket rows into socket_samples, each block once.

The file is read to its end before anything of it is loaded. On the way its first blocks are decoded, as many as there
is memory for; the others are read again, each while the engine takes those before it.
"""

import hashlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from clickhouse_connect.driver.client import Client

from tidegate.telemetry.block import PIECES_HELD, Block
from tidegate.telemetry.decode import Pieces, check, decode
from tidegate.telemetry.file_ledger import known_blocks, note_block
from tidegate.telemetry.file_refusal import changed, check_days
from tidegate.telemetry.hollow_tokens import insert_all, may_be_hollow, sample_of
from tidegate.telemetry.insertion import TABLE, another, insert_days, insert_rows
from tidegate.telemetry.native import NativeBlock
from tidegate.telemetry.record_ingest import Loaded

Reader = Callable[[Path, int], Iterator[Block]]  # of a file, from its n-th block on
Update = Callable[[memoryview], None]  # of a digest
_LANES: Final = 2  # inserts at once: the engine does most of one on one processor
_HELD: Final = 4  # decoded blocks in memory, 100 MB each


@dataclass(frozen=True, slots=True)
class _Verified:
    """A block of a file that was read to its end: what it holds, the token made of that, and its admitted rows."""

    digest: str
    token: str
    rows: int


@dataclass(frozen=True, slots=True)
class _Lane:
    """A client and the thread that waits for its inserts, one after the other."""

    client: Client
    thread: ThreadPoolExecutor


@dataclass(frozen=True, slots=True)
class _Load:
    """One file on its way, and the memory that its blocks take in turn.

    `doubted`: the store's tokens may stand for nothing.
    """

    path: Path
    read: Reader
    now_ns: int
    doubted: bool
    hashing: ThreadPoolExecutor
    blocks: tuple[NativeBlock, ...]


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
    with ExitStack() as stack:
        hashing = stack.enter_context(ThreadPoolExecutor(1))
        doubted = may_be_hollow(client, TABLE)
        load = _Load(path, read, time.time_ns(), doubted, hashing, tuple(NativeBlock() for _ in range(_HELD)))
        verified, left_out = _verify(load)
        total = sum(block.rows for block in verified)
        known = known_blocks(client, [block.token for block in verified])
        due = sum(block.token not in known for block in verified)
        clients = (client, *(stack.enter_context(another(client)) for _ in range(min(_LANES, due) - 1)))
        lanes = tuple(_Lane(each, stack.enter_context(ThreadPoolExecutor(1))) for each in clients)
        added = done = 0
        on_progress(0, total)
        for block in _inserted(load, lanes, verified, known) if due else ():
            added += 0 if block.token in known else block.rows
            done += block.rows
            on_progress(done, total)
    return Loaded(total, added, left_out)


def _verify(load: _Load) -> tuple[list[_Verified], dict[str, int]]:
    """Read the whole file; its first blocks are decoded on the way."""
    found: list[_Verified] = []
    left_out: Counter[str] = Counter()
    days: set[int] = set()
    for index, block in enumerate(load.read(load.path, 0)):
        digest = hashlib.sha256()
        pieces = _hashed(block.pieces, digest.update, load.hashing)
        if index < _HELD:
            judged = decode(pieces, block.count, load.blocks[index], load.now_ns)
        else:
            judged = check(pieces, block.count, load.now_ns)
        left_out.update(block.left_out)
        left_out.update(judged.left_out)
        days |= judged.days
        found.append(_Verified(digest.hexdigest(), _token(index, digest.hexdigest()), judged.count))
    check_days(load.path, days)
    return found, dict(left_out)


def _inserted(
    load: _Load, lanes: tuple[_Lane, ...], verified: list[_Verified], known: set[str]
) -> Iterator[_Verified]:
    """Each block, once it is in the store and in the ledger: in the file's order, whichever insert is done first."""
    again = load.read(load.path, _HELD)
    turns = cycle(lanes)
    running: deque[tuple[_Verified, Future[None] | None]] = deque()
    users: dict[int, Future[None]] = {}
    for index, block in enumerate(verified):
        while running and (running[0][1] is None or running[0][1].done()):
            yield _finished(*running.popleft())
        found = next(again, None) if index >= _HELD else None
        if block.token in known:
            running.append((block, None))
            continue
        place = index % _HELD
        if index >= _HELD:
            if place in users:
                wait([users[place]])
            _decode_again(load, found, block, load.blocks[place])
        users[place] = _start(load, next(turns), load.blocks[place], block)
        running.append((block, users[place]))
    while running:
        yield _finished(*running.popleft())


def _start(load: _Load, lane: _Lane, filled: NativeBlock, block: _Verified) -> Future[None]:
    def insert() -> None:
        if block.rows and load.doubted:
            sample = sample_of(TABLE, filled.columns)
            insert_all(lane.client, block.token, sample, partial(insert_days, lane.client, filled))
        elif block.rows:
            insert_rows(lane.client, filled, block.token)
        note_block(lane.client, block.token, load.path, block.rows)

    return lane.thread.submit(insert)


def _finished(block: _Verified, insert: Future[None] | None) -> _Verified:
    if insert is not None:
        insert.result()
    return block


def _decode_again(load: _Load, found: Block | None, expected: _Verified, into: NativeBlock) -> None:
    digest = hashlib.sha256()
    if found is not None:
        decode(_hashed(found.pieces, digest.update, load.hashing), found.count, into, load.now_ns)
    if digest.hexdigest() != expected.digest:
        raise changed(load.path)


def _hashed(pieces: Pieces, update: Update, hashing: ThreadPoolExecutor) -> Iterator[npt.NDArray[np.void]]:
    """The pieces; their bytes go into the digest on another processor. At the end all are in it."""
    running: deque[Future[None]] = deque()
    for piece in pieces:
        running.append(hashing.submit(update, np.ascontiguousarray(piece).view(np.uint8).data))
        yield piece
        if len(running) == PIECES_HELD:
            running.popleft().result()
    for each in running:
        each.result()


def _token(index: int, digest: str) -> str:
    return hashlib.sha256(f"{TABLE}/{index}/{digest}".encode()).hexdigest()
