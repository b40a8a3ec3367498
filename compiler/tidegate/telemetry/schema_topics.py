"""How the rows of each topic become a table's, in ClickHouse's own words: structure, columns, and who is admitted.

The columns and the reasons are those of `admission.py`, `hosts.py` and `transfers.py`; a test holds them together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from tidegate.schemas.hosts import HOSTS, PRESSURE, SCHEDSTAT, STAT
from tidegate.schemas.records import Records
from tidegate.schemas.rows import SCHEMA_VERSION, new_rows
from tidegate.schemas.transfers import TRANSFERS
from tidegate.telemetry.admission import DAY_NS, EARLIEST_NS

OLDEST_DAYS: Final = 30  # the stream's bound keeps one insert within the 100 partitions that ClickHouse takes
_MAX_CPUS: Final = 8192  # CONFIG_NR_CPUS of MAXSMP, arch/x86/Kconfig
_CLASSES: Final = 5  # TrafficClass of schemas/sockets.proto
_NOW_NS: Final = "toUnixTimestamp64Nano(now64(9))"


@dataclass(frozen=True, slots=True)
class TopicRows:
    """One topic.

    Attributes:
        name: what the names of its tables hold.
        topic: Kafka's name of it.
        table: where its rows go.
        structure: a row's bytes as columns of RowBinary, frame and values in turn; a field's column is `row_FIELD`,
            since a name of the table's would stand for the table's value of it.
        columns: of the table, each as an expression of the structure.
        checks: what holds of an admitted row, under the reason why one is left out where it does not.
    """

    name: str
    topic: str
    table: str
    structure: tuple[str, ...]
    columns: Mapping[str, str]
    checks: Mapping[str, str]


def _type(dtype: np.dtype[np.generic]) -> str:
    kinds = {"S": f"FixedString({dtype.itemsize})", "V": "IPv6", "u": f"UInt{8 * dtype.itemsize}"}
    return kinds[dtype.kind]


def _framed(one: Records) -> tuple[tuple[str, ...], str]:
    """The structure of rows like `one`, which is zeros in its frame; and the condition that a frame is such."""
    raw = one.tobytes()
    structure, conditions, end = [], [], 0
    for name, (dtype, offset, *_) in (one.dtype.fields or {}).items():
        structure += [f"frame_{offset} FixedString({offset - end})", f"row_{name} {_type(dtype)}"]
        conditions.append(f"frame_{offset} = unhex('{raw[end:offset].hex()}')")
        end = offset + dtype.itemsize
    return tuple(structure), " AND ".join(conditions)


def _as_they_are(one: Records, narrow: Mapping[str, str], time: str) -> dict[str, str]:
    """Every field under its own name; a time as a time, a name without the NULs that pad it."""
    columns = {}
    for name, (dtype, *_) in (one.dtype.fields or {}).items():
        if name == time:
            columns[name.removesuffix("_ns")] = f"fromUnixTimestamp64Nano(toInt64(row_{name}), 'UTC')"
        elif dtype.kind == "S":
            columns[name] = f"toStringCutToZero(row_{name})"
        else:
            columns[name] = f"{narrow[name]}(row_{name})" if name in narrow else f"row_{name}"
    return columns


def _checks(frame: str, version: int, time: str, further: Mapping[str, str]) -> dict[str, str]:
    oldest = f"intDiv({_NOW_NS}, {DAY_NS}) * {DAY_NS} - {OLDEST_DAYS * DAY_NS}"
    return {
        f"not a row of schema version {version}": f"row_schema_version = {version} AND {frame}",
        "time before 2015 or in the future": f"row_{time} >= {EARLIEST_NS} AND row_{time} <= {_NOW_NS} + {DAY_NS}",
        "older than the stream may be": f"row_{time} >= {oldest}",
        "POP is not a name": _is_name("pop"),
        "host is not a name": _is_name("host"),
        **further,
    }


def _is_name(field: str, many: str = "+") -> str:
    return f"match(row_{field}, '^[A-Za-z0-9._-]{many}\\\\x00*$')"


_CONGESTION_CONTROL: Final = {
    "congestion control is not a name": _is_name("congestion_control", "*"),
    "unknown traffic class": f"row_traffic_class < {_CLASSES}",
}


def _sockets() -> TopicRows:
    one = new_rows(1)
    structure, frame = _framed(one)
    lengths = ("local_prefix_length", "remote_prefix_length")
    narrow = {"traffic_class": "toInt8"} | dict.fromkeys(lengths, "toUInt8")
    checks = _CONGESTION_CONTROL | {
        "prefix longer than its address": " AND ".join(f"row_{each} <= 128" for each in lengths)
    }
    return TopicRows(
        "sockets",
        "tidegate.sockets",
        "socket_samples",
        structure,
        _as_they_are(one, narrow, "observed_at_ns"),
        _checks(frame, SCHEMA_VERSION, "observed_at_ns", checks),
    )


def _hosts() -> TopicRows:
    one = HOSTS.new(1)
    structure, frame = _framed(one)
    columns = _as_they_are(one, {"measured": "toUInt8"}, "observed_at_ns")
    del columns["schema_version"]
    columns["interval_us"] = "row_observed_us"
    columns["observed_us"] = f"if(bitAnd(row_measured, {PRESSURE}) != 0, row_observed_us, 0)"
    checks = {
        "interval of nothing or of more than a day": f"row_observed_us > 0 AND row_observed_us <= {DAY_NS // 1000}",
        "stalled for longer than observed": "row_cpu_stalled_us <= row_observed_us",
        "unknown counters": f"row_measured <= {PRESSURE | STAT | SCHEDSTAT}",
        "more CPUs than there can be": f"row_cpus <= {_MAX_CPUS}",
    }
    return TopicRows(
        "hosts",
        "tidegate.hosts",
        "host_health",
        structure,
        columns,
        _checks(frame, HOSTS.schema_version, "observed_at_ns", checks),
    )


def _transfers() -> TopicRows:
    one = TRANSFERS.new(1)
    structure, frame = _framed(one)
    narrow = {"traffic_class": "toInt8", "remote_prefix_length": "toUInt8", "status": "toUInt16"}
    columns = _as_they_are(one, narrow, "finished_at_ns")
    del columns["schema_version"]
    columns["bytes"] = columns.pop("bytes_sent")
    checks = _CONGESTION_CONTROL | {
        "prefix longer than its address": "row_remote_prefix_length <= 128",
        "status is none of HTTP": "row_status <= 999",
    }
    return TopicRows(
        "transfers",
        "tidegate.transfers",
        "transfers",
        structure,
        columns,
        _checks(frame, TRANSFERS.schema_version, "finished_at_ns", checks),
    )


TOPICS: Final = (_sockets(), _hosts(), _transfers())
