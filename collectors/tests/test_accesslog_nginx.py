"""The access log of a real nginx as transfers: rotated, truncated, cut, damaged, and the collector killed."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile, which

import pytest
from tidegate_edge.schemas.transfers import TRANSFERS

ROOT = Path(__file__).parents[2]
FORMAT = ROOT / "collectors/nginx/tidegate_log.conf"
COLLECTOR = Path(sys.executable).with_name("tidegate-collector")
PROGRAM = [COLLECTOR, "accesslog"]
OURS = ("--pop", "ams1", "--host", "edge1.ams1.example")
BODY = 300_000

pytestmark = pytest.mark.skipif(not which("nginx"), reason="no nginx: apt-get install nginx-light")


def awaits(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


@dataclass(frozen=True)
class Server:
    """A running nginx with two workers, its log, and what its clients got."""

    directory: Path
    port: int
    process: subprocess.Popen

    @property
    def log(self):
        return self.directory / "tidegate.log"

    def get(self, times=1, address="127.0.0.1"):
        """So many requests over one connection."""
        connection = http.client.HTTPConnection(address, self.port, timeout=20)
        for _ in range(times):
            connection.request("GET", "/body")
            assert len(connection.getresponse().read()) == BODY
        connection.close()

    def lines(self, path=None):
        return (path or self.log).read_bytes().count(b"\n") if (path or self.log).exists() else 0

    def reopen(self):
        """As logrotate's postrotate does; returns once the workers have."""
        os.kill(self.process.pid, signal.SIGUSR1)
        awaits(self.log.exists)


@pytest.fixture
def server(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "body").write_bytes(bytes(BODY))
    tmp_path.chmod(0o755)
    config = tmp_path / "nginx.conf"
    config.write_text(f"""
daemon off; worker_processes 2; pid {tmp_path}/nginx.pid; user root; error_log stderr;
events {{ }}
http {{
    include {FORMAT};
    access_log {tmp_path}/tidegate.log tidegate;
    server {{ listen 127.0.0.1:{port} reuseport; listen [::1]:{port} reuseport; root {tmp_path}; }}
}}
""")
    process = subprocess.Popen(["nginx", "-p", tmp_path, "-c", config], stderr=subprocess.DEVNULL)
    made = Server(tmp_path, port, process)
    try:
        awaits(lambda: answers(port))
        yield made
    finally:
        process.terminate()
        process.wait(60)


def answers(port):
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def command(server, *options):
    state = server.directory / "state"
    return [*PROGRAM, str(server.log), "--state-dir", str(state), *OURS, *options]


def once(server, *options):
    """One run to the log's end; returns (its counters, all rows so far)."""
    out = server.directory / "transfers.pb"
    argv = command(server, "--out", str(out), *options)
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stderr, TRANSFERS.read(out.read_bytes())


@contextmanager
def following(server, *options):
    """The collector while it follows the log; ended by SIGTERM, unless it was killed."""
    out = str(server.directory / "transfers.pb")
    argv = command(server, "--follow", "--interval", "20ms", "--out", out, *options)
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)


def rows_of(server):
    out = server.directory / "transfers.pb"
    data = out.read_bytes() if out.exists() else b""
    return TRANSFERS.read(data[: len(data) - len(data) % TRANSFERS.length])


def identities(rows):
    return {
        (row["finished_at_ns"].item(), row["connection"].item(), row["connection_requests"].item())
        for row in rows
    }


def logged(*paths):
    """The identities of the whole lines of these files, read without our code."""
    found = set()
    for path in paths:
        for line in path.read_bytes().splitlines():
            entry = json.loads(line)
            at_ns = int(entry["msec"].replace(".", "")) * 10**6
            found.add((at_ns, int(entry["connection"]), int(entry["connection_requests"])))
    return found


def test_a_transfer_of_each_family_says_what_the_server_logged_with_the_address_cut(server):
    before = time.time_ns()
    server.get()
    server.get(address="::1")
    awaits(lambda: server.lines() == 2)
    _, rows = once(server)
    four, six = rows
    assert four["remote_address"].item() == bytes(10) + b"\xff\xff\x7f\0\0\0"
    assert (four["remote_prefix_length"], six["remote_prefix_length"]) == (120, 56)
    assert six["remote_address"].item() == bytes(16)
    for row, line in zip(rows, server.log.read_text().splitlines(), strict=True):
        entry = json.loads(line)
        assert row["bytes_sent"] == int(entry["bytes_sent"]) > BODY
        assert row["duration_us"] == round(float(entry["request_time"]) * 10**6)
        assert before - 10**9 < row["finished_at_ns"] <= time.time_ns()
        assert row["rtt_us"] == int(entry["tcpinfo_rtt"]) > 0
        assert row["snd_cwnd"] == int(entry["tcpinfo_snd_cwnd"]) > 0
        assert (row["status"], row["local_port"], row["connection_requests"]) == (200, server.port, 1)
        assert (row["pop"], row["host"]) == (b"ams1", b"edge1.ams1.example")


def test_the_algorithm_is_that_of_the_connections_own_socket(server):
    algorithm = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", "/body")
    connection.getresponse().read()
    server.get()  # and is gone
    awaits(lambda: server.lines() == 2)
    _, (kept, gone) = once(server)
    connection.close()
    assert kept["congestion_control"].decode() == algorithm
    assert gone["congestion_control"].decode() in {"", algorithm}  # FIN_WAIT lasts as long as it likes


def test_goodput_of_a_slow_transfer_is_bytes_over_time(server):
    """A reader that takes 20 MB slowly: the server can't hand them to the kernel at once."""
    (server.directory / "large").write_bytes(bytes(20_000_000))
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        client.connect(("127.0.0.1", server.port))
        start = time.monotonic()
        client.sendall(b"GET /large HTTP/1.0\r\n\r\n")
        while client.recv(65_536):
            if time.monotonic() - start < 1:
                time.sleep(0.005)
        took = time.monotonic() - start
    awaits(lambda: server.lines() == 1)
    _, (row,) = once(server)
    assert row["bytes_sent"] > 20_000_000
    assert 0.5 < row["duration_us"] / 1e6 <= took + 0.01


def test_reading_goes_on_where_it_ended(server):
    server.get(times=3)
    awaits(lambda: server.lines() == 3)
    once(server)
    server.get(times=2)
    awaits(lambda: server.lines() == 5)
    said, rows = once(server)
    assert said.startswith("rows 2")
    assert len(rows) == 5
    assert identities(rows) == logged(server.log)
    said, rows = once(server)
    assert said == "rows 0\n"
    assert len(rows) == 5


def test_follow_over_rename_and_create_misses_nothing_the_workers_write_to_either_file(server):
    old = server.directory / "tidegate.log.1"
    with following(server):
        server.get(times=5)
        awaits(lambda: len(rows_of(server)) == 5)
        server.log.rename(old)
        server.get(times=5)  # still into the renamed file
        server.reopen()
        server.get(times=5)
        awaits(lambda: server.lines() + server.lines(old) == 15)
        awaits(lambda: len(rows_of(server)) == 15)
    assert identities(rows_of(server)) == logged(old, server.log)
    assert 5 < server.lines(old) < 15


def test_follow_over_copy_and_truncate_reads_what_only_the_copy_still_has(server):
    copy = server.directory / "tidegate.log.1"
    with following(server) as process:
        server.get(times=5)
        awaits(lambda: len(rows_of(server)) == 5)
        process.send_signal(signal.SIGSTOP)  # what comes now it will find in the copy alone
        server.get(times=5)
        awaits(lambda: server.lines() == 10)
        copyfile(server.log, copy)
        os.truncate(server.log, 0)
        server.get(times=20)  # and the log has grown beyond what was read of it
        awaits(lambda: server.lines() == 20)
        process.send_signal(signal.SIGCONT)
        awaits(lambda: len(rows_of(server)) >= 30)
    assert len(rows_of(server)) == 30
    assert identities(rows_of(server)) == logged(copy, server.log)


def test_two_rotations_while_the_collector_was_down(server):
    files = [server.directory / f"tidegate.log.{number}" for number in (2, 1)]
    server.get(times=4)
    awaits(lambda: server.lines() == 4)
    once(server)
    for file in files:
        server.get(times=3)
        time.sleep(0.02)
        server.log.rename(file)
        server.reopen()
    server.get(times=2)
    awaits(lambda: sum(map(server.lines, (*files, server.log))) == 12)
    _, rows = once(server)
    assert len(rows) == 12
    assert identities(rows) == logged(*files, server.log)


def test_damaged_lines_are_counted_and_the_rest_is_kept(server):
    server.get()
    awaits(lambda: server.lines() == 1)
    good = server.log.read_bytes()
    entry = json.loads(good)
    bad = [
        b"\0\xff\xfe",
        b"[" * 4000,
        b"[]",
        json.dumps(entry | {"bytes_sent": "-1"}).encode(),
        json.dumps(entry | {"bytes_sent": "9" * 20}).encode(),
        json.dumps(entry | {"remote_addr": "192.0.2.256"}).encode(),
        json.dumps({name: value for name, value in entry.items() if name != "msec"}).encode(),
        b"x" * 5_000,
        b"y" * 900_000,
    ]
    server.log.write_bytes(b"\n".join(bad) + b"\n" + good + good[:40])
    done = subprocess.run(command(server, "--json"), capture_output=True, text=True, check=False, timeout=60)
    (row,) = map(json.loads, done.stdout.splitlines())
    assert (row["bytes_sent"], row["remote_address"]) == (int(entry["bytes_sent"]), "127.0.0.0/24")
    told = json.loads(done.stderr)
    assert told == {
        "rows": 1,
        "lines too long": 2,
        "lines: no JSON": 2,
        "lines: not of the format tidegate-1": 1,
        "lines: bytes_sent can't be": 2,
        "lines: remote_addr can't be": 1,
        "lines: no msec": 1,
    }
    with server.log.open("ab") as log:
        log.write(good[40:])  # the end of the line that was cut
    said, rows = once(server)
    assert said == "rows 1\n"
    assert len(rows) == 1


def test_kill_9_while_it_follows_loses_no_transfer(server):
    """Ten times, wherever it is; what is delivered twice can be told by its identity."""
    sent = 0
    for _ in range(10):
        with following(server) as process:
            before = len(rows_of(server))
            server.get(times=10)
            sent += 10
            awaits(lambda before=before: len(rows_of(server)) > before)
            process.kill()
            server.get(times=2)
            sent += 2
    awaits(lambda: server.lines() == sent)
    _, rows = once(server)
    assert identities(rows) == logged(server.log)
    assert len(identities(rows)) == sent


def test_one_state_has_one_reader(server):
    with following(server):
        server.get()
        awaits(lambda: len(rows_of(server)) == 1)
        argv = command(server, "--json")
        second = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert second.returncode == 2
    assert "another collector reads it" in second.stderr
