"""The store opens whatever the DSN names, and says what is wrong where it cannot."""

import os
import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tidegate.errors import BAD_INPUT, MISSING_PART, Failure
from tidegate.telemetry.dsn import Embedded, Server, parse_dsn
from tidegate.telemetry.store import PASSWORD, PASSWORD_FILE, open_store


def failure_of(dsn):
    with pytest.raises(Failure) as caught, open_store(dsn):
        pass
    return caught.value


def test_embedded_store_keeps_its_data(tmp_path):
    directory = tmp_path / "not yet there" / "store"
    with open_store(f"chdb://{directory}") as client:
        client.command("CREATE TABLE kept (n Int8) ENGINE = MergeTree ORDER BY n")
        client.command("INSERT INTO kept VALUES (7)")
        assert client.query("SELECT currentDatabase()").result_rows == [("tidegate",)]
    with open_store(f"chdb://{directory}") as client:
        assert client.query("SELECT n FROM kept").result_rows == [(7,)]


def test_memory_store_forgets_its_data():
    for _ in range(2):
        with open_store("chdb://memory") as client:
            client.command("CREATE TABLE forgotten (n Int8) ENGINE = MergeTree ORDER BY n")


def test_the_same_directory_opens_twice_in_one_process(tmp_path):
    with open_store(f"chdb://{tmp_path}") as first, open_store(f"chdb://{tmp_path}") as second:
        first.command("CREATE TABLE seen (n Int8) ENGINE = MergeTree ORDER BY n")
        assert second.query("SELECT count() FROM seen").result_rows == [(0,)]


def test_a_directory_that_another_process_has_open_is_refused_with_its_id(tmp_path):
    hold = "import sys\nfrom tidegate.telemetry.store import open_store\n"
    hold += "with open_store(sys.argv[1]):\n    print('open', flush=True)\n    sys.stdin.read()\n"
    command = [sys.executable, "-c", hold, f"chdb://{tmp_path}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "open\n"
        failure = failure_of(f"chdb://{tmp_path}")
        holder.stdin.close()
    assert failure.exit_code == MISSING_PART
    assert failure.message.endswith(f"is in use by process {holder.pid}")
    with open_store(f"chdb://{tmp_path}") as client:
        assert client.query("SELECT 1").result_rows == [(1,)]


def test_a_store_where_a_file_stands_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    failure = failure_of(f"chdb://{tmp_path / 'file'}")
    assert failure.exit_code == MISSING_PART
    assert (
        failure.message == f"the telemetry store's directory {tmp_path / 'file'} cannot be used: File exists"
    )


def test_an_unreachable_server_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can listen here meanwhile
        port = taken.getsockname()[1]
        failure = failure_of(f"http://127.0.0.1:{port}/tidegate")
    assert failure.exit_code == MISSING_PART
    assert failure.message == (
        f"the ClickHouse server http://127.0.0.1:{port} cannot be reached:"
        " Failed to establish a new connection: [Errno 111] Connection refused"
    )
    assert "--dsn" in failure.help


def test_a_peer_that_speaks_no_tls_is_named():
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        failure = failure_of(f"https://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert failure.exit_code == MISSING_PART
    name = f"https://127.0.0.1:{server.server_port}"
    assert failure.message.startswith(f"the ClickHouse server {name} cannot be reached: ")
    assert "wrong version number" in failure.message


@pytest.mark.parametrize(
    ("dsn", "message"),
    [
        ("chdb://relative/path", "does not name a directory by its whole path"),
        ("chdb://", "does not name a directory by its whole path"),
        ("chdb:///a?b", "question mark"),
        ("clickhouse://host", "is not the DSN of a store"),
        ("https:///database", "is not the DSN of a store"),
        ("https://host:port", "the store's DSN is damaged"),
        ("https://host/a;b", "`a;b` in the store's DSN is not a database name"),
        ("https://host?verify=no", "unknown option `verify`"),
        ("https://host?ca=/nowhere/ca.pem", "`/nowhere/ca.pem`, the `ca` of the store's DSN, is not a file"),
        ("http://host?ca=/nowhere/ca.pem", "needs https"),
    ],
)
def test_a_wrong_dsn_is_refused(dsn, message):
    failure = failure_of(dsn)
    assert failure.exit_code == BAD_INPUT
    assert message in failure.message


def test_a_password_in_the_dsn_is_refused_and_not_repeated():
    failure = failure_of("https://reader:s3cret@host/tidegate")
    assert failure.exit_code == BAD_INPUT
    assert "password" in failure.message
    assert "s3cret" not in failure.message + failure.help
    assert PASSWORD_FILE in failure.help


def test_a_password_is_not_sent_in_clear_text_to_another_machine(monkeypatch):
    monkeypatch.setenv(PASSWORD, "s3cret")
    failure = failure_of("http://192.0.2.1:8123/tidegate")
    assert failure.exit_code == BAD_INPUT
    assert failure.message == "a password would pass to http://192.0.2.1:8123 in clear text"


def test_a_password_file_must_be_readable(monkeypatch, tmp_path):
    monkeypatch.setenv(PASSWORD_FILE, str(tmp_path / "missing"))
    assert "missing: cannot be read" in failure_of("https://127.0.0.1:9").message
    monkeypatch.setenv(PASSWORD, "s3cret")
    assert "both" in failure_of("https://127.0.0.1:9").message


def test_defaults_of_a_server():
    assert parse_dsn("https://host") == Server("https", "host", 8443, "default", "tidegate", None, None, None)
    assert parse_dsn("http://r%40d@[2001:db8::1]/other") == Server(
        "http", "2001:db8::1", 8123, "r@d", "other", None, None, None
    )


def test_a_path_is_taken_as_written(tmp_path):
    assert parse_dsn(f"chdb://{tmp_path}/a%20b #c") == Embedded(tmp_path / "a%20b #c")


def test_what_is_not_installed_is_named():
    code = "import sys\nsys.modules['pyarrow'] = None\nfrom tidegate.errors import Failure\n"
    code += "try:\n    import tidegate.telemetry.store\nexcept Failure as failure:\n"
    code += "    print(failure.exit_code, failure.message, failure.help)\n"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.startswith("3 the telemetry store needs the Python package `pyarrow`")
    assert "tidegate[embedded]" in done.stdout


FILLED = """
import os, re
from pathlib import Path
from tidegate.telemetry.store import open_store
with open_store("chdb://memory") as client:
    client.command("CREATE TABLE filled (n UInt64) ENGINE = Memory AS SELECT number FROM numbers(10_000_000)")
    kib = re.search(r"AnonHugePages: +(\\d+)", Path("/proc/self/smaps_rollup").read_text())[1]
print(int(kib) // 1024, os.environ.get("JE_MALLOC_CONF"))
"""


@pytest.mark.parametrize("own", [None, "thp:never"])
def test_the_engine_takes_large_pages_unless_it_was_told_how_to_take_memory(own):
    environment = os.environ | ({"JE_MALLOC_CONF": own} if own else {})
    done = subprocess.run(
        [sys.executable, "-c", FILLED], capture_output=True, text=True, check=True, env=environment
    )
    megabytes, after = done.stdout.split()
    forbidden = "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    assert (int(megabytes) >= 60) is (own is None and not forbidden)
    assert after == str(own)
