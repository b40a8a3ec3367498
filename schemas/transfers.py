"""The constant-length form of a `TransferRow`."""

from typing import Final

from . import transfers_pb2
from .records import RecordForm, record_form

TRANSFERS: Final[RecordForm] = record_form(
    transfers_pb2.TransferRow,
    1,
    {"pop": 16, "host": 32, "remote_address": 16, "congestion_control": 16},
)
