"""The two forms of rows that are not sockets: length-delimited protobuf, and JSON lines for people."""

import json
import os
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from tidegate_edge.schemas.records import RecordForm, Records
from tidegate_edge.sockets.addresses import as_text

from .form import Form

_MAX_LINE: Final = 1 << 12


def protobuf_form(kind: RecordForm) -> Form:
    """Rows as their memory has them."""

    def whole_length(fd: int, size: int) -> int:
        if size and not kind.is_of(os.pread(fd, kind.length, 0)):
            raise ValueError(f"byte 0: not a {kind.name}")
        return size - size % kind.length

    return Form(lambda rows: rows.view(np.uint8).data, whole_length, for_people=False)


def json_form(kind: RecordForm) -> Form:
    """One JSON object a line, names and units of the proto file; addresses as prefixes."""
    begin = f'{{"schema_version": {kind.schema_version}, "{(kind.dtype.names or ())[1]}": '.encode()

    def encode(rows: Records) -> bytes:
        return "".join(f"{json.dumps(record)}\n" for record in _objects(rows)).encode()

    def whole_length(fd: int, size: int) -> int:
        first = os.pread(fd, _MAX_LINE, 0)
        if size and not (first.startswith(begin) and b"\n" in first):
            raise ValueError(f"byte 0: the first line is no {kind.name} in JSON")
        at = max(size - _MAX_LINE, 0)
        last = os.pread(fd, _MAX_LINE, at)
        whole = last.rfind(b"\n") + 1
        if last[whole : whole + len(begin)] != begin[: len(last) - whole]:
            raise ValueError(f"byte {at + whole}: what stands at its end is no row that was cut")
        return at + whole

    return Form(encode, whole_length, for_people=True)


def _objects(rows: Records) -> Iterator[dict[str, Any]]:
    names = [name for name in rows.dtype.names or () if not name.endswith("_prefix_length")]
    for row in rows:
        record = {name: row[name].item() for name in names}
        for name, value in record.items():
            if isinstance(value, bytes):
                record[name] = (
                    as_text(value, int(row[name.replace("_address", "_prefix_length")]))
                    if name.endswith("_address")
                    else value.decode("utf-8", "replace")
                )
        yield record
