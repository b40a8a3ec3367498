"""Where tidegate-collector's rows go: what it refuses to write to, and what it leaves as it was."""

import fcntl
import json
import os
import resource
import socket
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
OURS = ("--pop", "ams1", "--host", "edge1.ams1.example")
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
        ROWS[:LINE].replace(b'"schema_version": 2,', b'"schema_version": 1,'),
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
    assert f"{out}: byte 0: the first line is no row of schema version 2" in done.stderr.decode()
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


def test_a_named_pipe_is_refused_before_a_row_is_lost_in_it(tmp_path):
    out = tmp_path / "pipe"
    os.mkfifo(out)
    reader = os.open(out, os.O_RDONLY | os.O_NONBLOCK)
    done = collector("once", *OURS, "--out", out)
    assert (done.returncode, os.read(reader, 1)) == (2, b"")
    os.close(reader)
    assert done.stderr.decode() == (
        f"tidegate-collector: {out}: not a regular file\nhelp: write to standard output instead\n"
    )


@pytest.mark.parametrize("device", ["/dev/full", "/dev/null"])
def test_a_device_is_refused(device):
    done = collector("once", *OURS, "--out", device)
    assert done.returncode == 2
    assert f"{device}: not a regular file\n" in done.stderr.decode()


def test_a_file_that_cannot_be_cut_back_may_end_within_a_row():
    rows = new_rows(2).tobytes()
    limit = len(rows) + 100  # the kernel takes part of the write, as on a full disk
    sealed = os.memfd_create("rows", os.MFD_ALLOW_SEALING)
    os.write(sealed, rows)
    fcntl.fcntl(sealed, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    out = f"/proc/self/fd/{sealed}"
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()):
        done = collector(
            "once",
            *(*OURS, "--out", out),
            pass_fds=[sealed],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )
    size = os.fstat(sealed).st_size
    os.close(sealed)
    assert (done.returncode, size) == (3, limit)
    assert done.stderr.decode() == (
        f"tidegate-collector: {out}: File too large; it may end within a row, "
        f"for it could not be cut back to {len(rows)} bytes: Operation not permitted\n"
    )


@pytest.mark.parametrize("arguments", [("--json",), OURS])
def test_a_closed_standard_output_is_told(arguments):
    closed = ["sh", "-c", 'exec "$0" "$@" >&-', COLLECTOR, "once", *arguments]
    done = subprocess.run(closed, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 3
    assert done.stderr.decode() == (
        "tidegate-collector: standard output is closed\nhelp: open it, or name a file with `--out`\n"
    )


def test_a_namespace_without_a_name_is_refused():
    done = collector("once", "--json", "--netns", "")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == (
        "tidegate-collector: the name of the network namespace is empty\n"
        "help: name one of `ip netns list`; without `--netns` it is that of the collector\n"
    )
