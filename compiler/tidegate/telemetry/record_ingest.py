"""Loads files of host health and of transfers into their tables, each block once."""

import hashlib
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from clickhouse_connect.driver.client import Client

from tidegate.errors import Failure
from tidegate.schemas.records import Records
from tidegate.telemetry.file_ledger import known_blocks, note_block
from tidegate.telemetry.file_refusal import changed, check_days, unreadable
from tidegate.telemetry.hollow_tokens import insert_all, may_be_hollow, sample_of
from tidegate.telemetry.record import RecordKind
from tidegate.telemetry.record_insertion import insert_records
from tidegate.telemetry.record_kinds import RECORD_KINDS, RecordFormat

BLOCK_ROWS: Final = 250_000


@dataclass(frozen=True, slots=True)
class Loaded:
    """What became of one file: rows admitted, those of them that were new, and by reason what was left out."""

    rows: int
    added: int
    left_out: dict[str, int]


def kind_of(path: Path) -> RecordFormat | None:
    """Which of these kinds a file holds, told by the frame of its first row; None: neither.

    Raises:
        Failure: it can't be read.
    """
    try:
        with path.open("rb") as file:
            first = file.read(max(kind.form.length for kind in RECORD_KINDS.values()))
    except OSError as error:
        raise unreadable(path, error) from error
    return next((name for name, kind in RECORD_KINDS.items() if kind.form.is_of(first)), None)


def ingest_records(
    client: Client, path: Path, kind: RecordKind, on_progress: Callable[[int, int], None] | None = None
) -> Loaded:
    """Add a file's rows to the store, if they are not there yet.

    The whole file is read and verified first. Its blocks are told apart by what they hold, not by its name.

    Args:
        client: of an open and migrated store.
        path: of the file.
        kind: what `kind_of` says it holds.
        on_progress: called with rows done and rows in all.

    Raises:
        Failure: unreadable, damaged (the message names the byte), changed meanwhile, or over too many days.
    """
    now_ns = time.time_ns()
    digests, left_out, total = [], Counter[str](), 0
    days: frozenset[int] = frozenset()
    for block in _blocks(path, kind):
        admitted = kind.admit(block, now_ns)
        digests.append(_digest(block))
        left_out.update(admitted.left_out)
        days |= admitted.days
        total += len(admitted.rows)
    check_days(path, days)
    tokens = [_token(kind, number, digest) for number, digest in enumerate(digests)]
    known = known_blocks(client, tokens)
    added = done = 0
    for block, digest, token in zip(_blocks(path, kind), digests, tokens, strict=True):
        if _digest(block) != digest:
            raise changed(path)
        rows = kind.admit(block, now_ns).rows
        if token not in known:
            _insert(client, path, kind, token, rows)
            added += len(rows)
        done += len(rows)
        if on_progress:
            on_progress(done, total)
    return Loaded(total, added, dict(left_out))


def _blocks(path: Path, kind: RecordKind) -> Iterator[Records]:
    offset = 0
    try:
        with path.open("rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Failure(f"{path}: not a regular file")
            while data := file.read(BLOCK_ROWS * kind.form.length):
                yield kind.form.read(data)
                offset += len(data)
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:
        what, at = error.args
        byte = offset + at
        way_out = f"keep the whole rows before it: head -c {byte} {path} > whole.pb"
        raise Failure(f"{path}: byte {byte}: {what}", help=way_out) from error


def _digest(block: Records) -> str:
    return hashlib.sha256(block.tobytes()).hexdigest()


def _token(kind: RecordKind, number: int, digest: str) -> str:
    return hashlib.sha256(f"{kind.table}/{number}/{digest}".encode()).hexdigest()


def _insert(client: Client, path: Path, kind: RecordKind, token: str, rows: Records) -> None:
    sample = sample_of(kind.table, rows) if may_be_hollow(client, kind.table) else None
    insert_all(client, token, sample, partial(insert_records, client, kind, rows))
    note_block(client, token, path, len(rows))
