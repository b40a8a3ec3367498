"""A kind of telemetry beside the sockets: its rows' form, which of them are admitted, and the table they go to."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.schemas.records import RecordForm, Records
from tidegate.telemetry.admission import DAY_NS, EARLIEST_NS, Admitted

Column = npt.NDArray[np.generic]
Check = Callable[[Records], npt.NDArray[np.bool_]]

_NAME: Final = re.compile(rb"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class RecordKind:
    """One kind.

    Attributes:
        form: of its rows in files.
        table: where they go.
        time: the field that says when, nanoseconds of Unix time.
        checks: what holds of an admitted row, under the reason why one is left out where it does not.
        columns: of the table, each made of the rows. A time column is the field itself, in nanoseconds.
    """

    form: RecordForm
    table: str
    time: str
    checks: Mapping[str, Check]
    columns: Mapping[str, Callable[[Records], Column]]

    def admit(self, rows: Records, now_ns: int, earliest_ns: int = EARLIEST_NS) -> Admitted:
        """Leave out rows that are damaged or lie in time; a row counts under its first reason only.

        Args:
            rows: of `form`.
            now_ns: Unix time in nanoseconds; a clock may run up to a day ahead of ours.
            earliest_ns: Unix time of the oldest row that is plausible.
        """
        time = rows[self.time]
        good = np.ones(len(rows), np.bool_)
        left_out = {}
        times: dict[str, Check] = {
            "time before 2015 or in the future": lambda _: (time >= EARLIEST_NS) & (time <= now_ns + DAY_NS),
            "older than the stream may be": lambda _: time >= earliest_ns,
        }
        for reason, holds in {**times, **self.checks}.items():
            held = holds(rows)
            if count := int(np.count_nonzero(good & ~held)):
                left_out[reason] = count
            good &= held
        admitted = rows[good]
        days = np.unique(admitted[self.time] // np.uint64(DAY_NS))
        return Admitted(admitted, left_out, frozenset(days.tolist()))

    def arrow_table(self, rows: Records) -> pa.Table:
        """Admitted rows with the names and types that ClickHouse takes for the table.

        Strings and addresses go as fixed-size binary: ClickHouse cuts the NUL bytes that pad a name, and reads 16
        bytes as an IPv6 address.
        """
        made = {name: np.ascontiguousarray(column(rows)) for name, column in self.columns.items()}
        time = self.time.removesuffix("_ns")
        arrays = [
            pa.Array.from_buffers(
                _type(column.dtype, is_time=name == time), len(column), [None, pa.py_buffer(column.tobytes())]
            )
            for name, column in made.items()
        ]
        return pa.Table.from_arrays(arrays, names=list(made))


def field(name: str, narrow: type[np.generic] | None = None) -> Callable[[Records], Column]:
    """A column that is a field, in a narrower type where one is given."""
    return lambda rows: rows[name] if narrow is None else rows[name].astype(narrow)


def is_name(name: str, *, may_be_empty: bool = False) -> Check:
    """Whether the field is letters, digits, `.`, `_`, `-`."""

    def check(rows: Records) -> npt.NDArray[np.bool_]:
        values, places = np.unique(rows[name], return_inverse=True)
        good = [bool(_NAME.fullmatch(value)) if value else may_be_empty for value in values.tolist()]
        held: npt.NDArray[np.bool_] = np.array(good, np.bool_)[places]
        return held

    return check


def at_most(name: str, highest: int) -> Check:
    """Whether the field is no higher."""
    return lambda rows: rows[name] <= highest


def _type(dtype: np.dtype[np.generic], *, is_time: bool) -> pa.DataType:
    if is_time:
        return pa.timestamp("ns", tz="UTC")
    return pa.binary(dtype.itemsize) if dtype.kind in "SV" else pa.from_numpy_dtype(dtype)
