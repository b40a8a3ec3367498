"""From a line of the access log to the goodput that a policy may exclude by, through the collector and the store."""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from tidegate.telemetry.ingest import ingest_file
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate.telemetry.transfers import TRANSFER

COLLECTOR = Path(sys.executable).with_name("tidegate-collector")
AT = int(datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp())


def line(number):
    return json.dumps(
        {
            "format": "tidegate-1", "msec": f"{AT + number}.500", "remote_addr": f"198.51.100.{number}",
            "remote_port": "50000", "server_addr": "203.0.113.1", "server_port": "443", "connection": str(number),
            "connection_requests": "1", "status": "200", "bytes_sent": "1000000", "request_time": f"{number}.000",
            "tcpinfo_rtt": "20000", "tcpinfo_rttvar": "500", "tcpinfo_snd_cwnd": "90", "tcpinfo_rcv_space": "14480",
        }
    )  # fmt: skip


def test_a_log_that_comes_into_being_while_it_is_followed_reaches_the_store(tmp_path):
    log, out = tmp_path / "tidegate.log", tmp_path / "transfers.pb"
    argv = [
        COLLECTOR,
        "accesslog",
        log,
        "--follow",
        "--state-dir",
        tmp_path,
        "--interval",
        "10ms",
    ]
    argv += ["--pop", "ams1", "--host", "edge1.ams1.example", "--out", out]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as collector:
        deadline = time.monotonic() + 60
        while not out.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        log.write_text("".join(f"{line(number)}\n" for number in (1, 2, 4)))
        while out.stat().st_size < 3 * TRANSFER.form.length:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        collector.terminate()
        assert collector.wait(60) == 0
        assert collector.stderr.read() == "rows 3\n"
    with open_store("chdb://memory") as client:
        migrate(client)
        report = ingest_file(client, out)
        assert (report.format, report.rows, report.added, report.left_out) == ("transfers", 3, 3, {})
        found = client.query(
            "SELECT toString(remote_address), remote_prefix_length, intDiv(bytes * 8000000, duration_us)"
            " FROM transfers ORDER BY finished_at"
        ).result_rows
    assert found == [("::ffff:198.51.100.0", 120, rate) for rate in (8_000_000, 4_000_000, 2_000_000)]
