"""Where tidegate-collector's rows go: what it refuses to write to, and what it leaves as it was."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidegate_edge.errors import Failure
from tidegate_edge.schemas.rows import new_rows
from tidegate_edge.ship.sink import FileSink
from tidegate_edge.ship.text import JSON_LINES

COLLECTOR = Path(sys.executable).with_name("tidegate-collector")
ROWS = bytes(JSON_LINES.encode(new_rows(3)))
LINE = len(ROWS) // 3

CLAIMS = b'{"schema_version":1,"claims":[{"prefix":"192.0.2.0/24","mss":1400}]}'
LONG = json.dumps({"schema_version": 1, "claims": ["192.0.2.0/24"] * 2200}).encode()


def collector(*arguments, **settings):
    command = [COLLECTOR, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, timeout=60, **settings)


@pytest.mark.parametrize(
    "content",
    [
        CLAIMS,
        CLAIMS + b"\n",
        LONG,
        LONG + b"\n",
        json.dumps(json.loads(CLAIMS), indent=2).encode(),
        b'{"a":' * 1500 + b"\n",
        ROWS[:LINE].replace(b'"schema_version": 1,', b'"schema_version": 2,'),
        ROWS[: LINE // 2],
        ROWS + CLAIMS,
        ROWS + LONG,
        ROWS + bytes(100),
    ],
)
def test_json_of_others_is_left_as_it_is(tmp_path, content):
    out = tmp_path / "user.json"
    out.write_bytes(content)
    with pytest.raises(Failure) as caught:
        FileSink(out, JSON_LINES)
    assert (caught.value.exit_code, caught.value.help) == (2, "name another file; this one was left as it is")
    assert out.read_bytes() == content


def test_json_of_others_is_refused_on_the_command_line(tmp_path):
    out = tmp_path / "user.json"
    out.write_bytes(CLAIMS)
    done = collector("once", "--json", "--pop", "ams1", "--out", out)
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"{out}: byte 0: the first line is no row of schema version 1" in done.stderr.decode()
    assert out.read_bytes() == CLAIMS


@given(cut=st.integers(LINE, len(ROWS)))
def test_a_line_that_a_crash_cut_is_removed_and_no_other(tmp_path_factory, cut):
    out = tmp_path_factory.mktemp("rows") / "rows.json"
    out.write_bytes(ROWS[:cut])
    sink = FileSink(out, JSON_LINES)
    sink.write([new_rows(1)])
    sink.close()
    assert sink.removed == cut % LINE
    assert out.read_bytes() == ROWS[: cut // LINE * LINE] + ROWS[:LINE]
