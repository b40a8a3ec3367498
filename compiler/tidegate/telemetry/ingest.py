"""Loads telemetry files into socket_samples, each once, however often it is asked and wherever it died before."""

import hashlib
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from clickhouse_connect.driver.client import Client

from tidegate.errors import Failure
from tidegate.telemetry import mlab, rowfile
from tidegate.telemetry.admission import admit
from tidegate.telemetry.block import Block
from tidegate.telemetry.insertion import TABLE, insert_rows
from tidegate.telemetry.record_ingest import RECORD_KINDS, ingest_records, kind_of

Format = Literal["rows", "ndt7", "tcpinfo", "health", "transfers"]
MAX_DAYS: Final = 90  # ClickHouse takes one insert into at most 100 partitions, and ours are days
_GZIP: Final = b"\x1f\x8b"  # RFC 1952
_READERS: Final[dict[Format, Callable[[Path], Iterator[Block]]]] = {
    "rows": rowfile.read,
    "ndt7": mlab.read,
    "tcpinfo": mlab.read,
}


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of one file.

    `rows` are those that were admitted, `added` those that the store did not have yet, `left_out` counts by
    reason what was not admitted. `duplicate`: there were rows, and all of them were known.
    """

    path: Path
    format: Format
    rows: int
    added: int
    duplicate: bool
    left_out: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Verified:
    """A file that was read to its end: the digest and the admitted rows of each block."""

    blocks: tuple[tuple[str, int], ...]
    left_out: dict[str, int]


def ingest_file(
    client: Client,
    path: Path,
    *,
    format: Format | None = None,  # noqa: A002
    on_progress: Callable[[int, int], None] | None = None,
) -> IngestReport:
    """Add a file's rows to the store, if they are not there yet.

    The whole file is read and verified first, so that nothing of a damaged one is loaded. Its blocks are told
    apart by what they hold, not by the file's name. A file that has grown is known up to its last whole block:
    load files that are complete.

    Args:
        client: of an open and migrated store.
        path: rows of tidegate-collector, or an M-Lab archive under its own name.
        format: what the file is; by default found from its first bytes.
        on_progress: called with rows done and rows in all.

    Raises:
        Failure: unreadable, damaged (the message names the byte), or over more than `MAX_DAYS` days.
    """
    report_progress = on_progress or _unseen
    kind = format or detect(path)
    if kind in RECORD_KINDS:
        loaded = ingest_records(client, path, RECORD_KINDS[kind], report_progress)
        duplicate = loaded.rows > 0 and loaded.added == 0
        return IngestReport(path, kind, loaded.rows, loaded.added, duplicate, loaded.left_out)
    read = _READERS[kind]
    now_ns = time.time_ns()
    verified = _verify(path, read(path), now_ns)
    total = sum(rows for _, rows in verified.blocks)
    tokens = [_token(index, digest) for index, (digest, _) in enumerate(verified.blocks)]
    known = _known(client, tokens)
    added = done = 0
    report_progress(0, total)
    if not known.issuperset(tokens):
        for (digest, rows), token, block in zip(verified.blocks, tokens, read(path), strict=True):
            if token not in known:
                if block.digest != digest:
                    raise Failure(
                        f"{path}: changed while it was read", help="load it when nothing writes to it"
                    )
                _insert(client, path, token, block, now_ns)
                added += rows
            done += rows
            report_progress(done, total)
    return IngestReport(path, kind, total, added, total > 0 and added == 0, verified.left_out)


def detect(path: Path) -> Format:
    """What a file is: gzip is an M-Lab archive, whose name tells which; all else must be rows of a kind."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for its writer
            raise Failure(f"{path}: not a regular file")
        with path.open("rb") as file:
            first = file.read(len(_GZIP))
    except OSError as error:
        raise Failure(f"{path}: cannot be read: {error.strerror}") from error
    if first == _GZIP:
        return mlab.origin(path).datatype
    return kind_of(path) or "rows"


def _unseen(*_: int) -> None:
    """Progress that nobody watches."""


def _verify(path: Path, blocks: Iterator[Block], now_ns: int) -> _Verified:
    found: list[tuple[str, int]] = []
    left_out: Counter[str] = Counter()
    days: set[int] = set()
    for block in blocks:
        admitted = admit(block.rows, now_ns)
        left_out.update(block.left_out)
        left_out.update(admitted.left_out)
        days |= admitted.days
        found.append((block.digest, len(admitted.rows)))
    if len(days) > MAX_DAYS:
        raise Failure(
            f"{path}: its rows lie on {len(days)} different days, more than {MAX_DAYS}",
            help="look at the clock of the host that wrote it, or split the file by days",
        )
    return _Verified(tuple(found), dict(left_out))


def _token(index: int, digest: str) -> str:
    return hashlib.sha256(f"{TABLE}/{index}/{digest}".encode()).hexdigest()


def _known(client: Client, tokens: list[str]) -> set[str]:
    rows = client.query(
        "SELECT DISTINCT toString(token) FROM ingested_blocks WHERE token IN {tokens:Array(String)}",
        parameters={"tokens": tokens},
    ).result_rows
    return {str(row[0]) for row in rows}


def _insert(client: Client, path: Path, token: str, block: Block, now_ns: int) -> None:
    """The block, then its entry in the ledger: after a crash between the two the token makes the insert a no-op."""
    rows = admit(block.rows, now_ns).rows
    if len(rows):
        insert_rows(client, rows, token)
    client.command(
        "INSERT INTO ingested_blocks (token, file, added) VALUES ({token:String}, {file:String}, {added:UInt64})",
        parameters={"token": token, "file": path.name, "added": len(rows)},
    )
