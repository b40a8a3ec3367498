"""The constant-length form of a `HostRow`."""

from typing import Final

from . import hosts_pb2
from .records import RecordForm, record_form

# Bits of `measured`.
PRESSURE: Final = 1
STAT: Final = 2
SCHEDSTAT: Final = 4

HOSTS: Final[RecordForm] = record_form(hosts_pb2.HostRow, 1, {"pop": 16, "host": 32})
