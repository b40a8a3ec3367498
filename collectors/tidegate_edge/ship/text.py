"""Rows for people: one JSON object a line; addresses, states and classes as text."""

import json
import os
from collections.abc import Iterator
from typing import Any, Final

from tidegate_edge.schemas.rows import ROW, SCHEMA_VERSION
from tidegate_edge.schemas.sockets_pb2 import TrafficClass
from tidegate_edge.sockets.addresses import as_text
from tidegate_edge.sockets.decode import Rows
from tidegate_edge.sockets.kernel import STATES

from .form import Form

# An address says its prefix length itself.
_NAMES: Final = tuple(name for name in ROW.names or () if not name.endswith("_prefix_length"))
_CLASSES: Final = {
    number: name.removeprefix("TRAFFIC_CLASS_").lower() for name, number in TrafficClass.items()
}

# No line is longer: 57 fields of 20 digits or 48 characters, and their names.
_MAX_LINE: Final = 1 << 13

# Every line begins so: the schema version, the same in all rows, and the name of what follows it.
_BEGIN: Final = f'{{"{_NAMES[0]}": {SCHEMA_VERSION}, "{_NAMES[1]}": '.encode()


def as_objects(rows: Rows) -> Iterator[dict[str, Any]]:
    """Each row under the names of `sockets.proto`; numbers in its units, the rest as text."""
    for row in rows:
        record = {name: row[name].item() for name in _NAMES}
        for side in ("local", "remote"):
            record[f"{side}_address"] = as_text(record[f"{side}_address"], int(row[f"{side}_prefix_length"]))
        for name in ("pop", "host", "congestion_control"):
            record[name] = record[name].decode("utf-8", "replace")
        record["state"] = STATES.get(record["state"], str(record["state"]))
        record["traffic_class"] = _CLASSES.get(record["traffic_class"], str(record["traffic_class"]))
        yield record


def _encode(rows: Rows) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in as_objects(rows)).encode()


def _whole_length(fd: int, size: int) -> int:
    if not size:
        return 0
    first, newline, _ = os.pread(fd, _MAX_LINE, 0).partition(b"\n")
    if not newline or not _is_row(first):
        raise ValueError(f"byte 0: the first line is no row of schema version {SCHEMA_VERSION}")
    begin = max(size - _MAX_LINE, 0)
    last = os.pread(fd, _MAX_LINE, begin)
    whole = last.rfind(b"\n") + 1
    tail = last[whole:]
    if not whole or not _begins_as_row(tail):
        raise ValueError(f"byte {begin + whole}: what stands at its end is no row that was cut")
    return begin + whole


def _is_row(line: bytes) -> bool:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # the latter where somebody's lists are nested by the hundred
        return False
    return isinstance(record, dict) and tuple(record) == _NAMES and record["schema_version"] == SCHEMA_VERSION


def _begins_as_row(tail: bytes) -> bool:
    return tail[: len(_BEGIN)] == _BEGIN[: len(tail)]


JSON_LINES: Final = Form(_encode, _whole_length, for_people=True)
