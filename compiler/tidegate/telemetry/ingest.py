"""Loads telemetry files into socket_samples, each once, however often it is asked and wherever it died before."""

import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from clickhouse_connect.driver.client import Client

from tidegate.errors import Failure
from tidegate.telemetry import mlab, rowfile
from tidegate.telemetry.block import Block
from tidegate.telemetry.file_refusal import unreadable
from tidegate.telemetry.record_ingest import ingest_records, kind_of
from tidegate.telemetry.record_kinds import RECORD_KINDS
from tidegate.telemetry.row_ingest import Reader, ingest_rows

Format = Literal["rows", "ndt7", "tcpinfo", "health", "transfers"]
_GZIP: Final = b"\x1f\x8b"  # RFC 1952


def _read_archive(path: Path, skip: int) -> Iterator[Block]:
    for found in islice(mlab.read(path), skip, None):
        yield Block(len(found.rows), iter([found.rows]), found.left_out)


_READERS: Final[dict[Format, Reader]] = {
    "rows": rowfile.read,
    "ndt7": _read_archive,
    "tcpinfo": _read_archive,
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
    else:
        loaded = ingest_rows(client, path, _READERS[kind], report_progress)
    duplicate = loaded.rows > 0 and loaded.added == 0
    return IngestReport(path, kind, loaded.rows, loaded.added, duplicate, loaded.left_out)


def detect(path: Path) -> Format:
    """What a file is: gzip is an M-Lab archive, whose name tells which; all else must be rows of a kind."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for its writer
            raise Failure(f"{path}: not a regular file")
        with path.open("rb") as file:
            first = file.read(len(_GZIP))
    except OSError as error:
        raise unreadable(path, error) from error
    if first == _GZIP:
        return mlab.origin(path).datatype
    return kind_of(path) or "rows"


def _unseen(*_: int) -> None:
    """Progress that nobody watches."""
