"""The kinds of rows that a host sends: their forms in files, and their topics."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .schemas.hosts import HOSTS
from .schemas.records import RecordForm
from .schemas.rows import ROW_LENGTH, SCHEMA_VERSION
from .schemas.transfers import TRANSFERS
from .ship.form import Form
from .ship.protobuf import PROTOBUF
from .ship.records import json_form, protobuf_form
from .ship.text import JSON_LINES

_STATE: Final = Path("/var/lib/tidegate")


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows of one kind.

    Attributes:
        topic: unless the user names another.
        spool: likewise; each kind has its own, for a spool belongs to one process.
        schema_version: of the rows.
        row_length: of each, bytes.
        protobuf: how they lie in files and messages.
        json: how people see them.
    """

    topic: str
    spool: Path
    schema_version: int
    row_length: int
    protobuf: Form
    json: Form


def _stream(name: str, kind: RecordForm) -> Stream:
    forms = protobuf_form(kind), json_form(kind)
    return Stream(f"tidegate.{name}", _STATE / f"spool-{name}", kind.schema_version, kind.length, *forms)


SOCKET_STREAM: Final = Stream(
    "tidegate.sockets", _STATE / "spool", SCHEMA_VERSION, ROW_LENGTH, PROTOBUF, JSON_LINES
)
TRANSFER_STREAM: Final = _stream("transfers", TRANSFERS)
HOST_STREAM: Final = _stream("hosts", HOSTS)
