"""What a cluster's store makes of telemetry is what a single server's makes of it: loading, closing, selecting.

Two shards of one process, whose table is the same: read through the Distributed table every row is there twice. So
the single server that is compared with holds each row twice.
"""

import json
import subprocess
import sys

import numpy as np
from tidegate.schemas.rows import new_rows

POPS, PREFIXES, POLLS, STEP_S, START_S = 8, 12, 6, 300, 1_795_132_800
CONFIGURATION = """
<clickhouse>
  <tcp_port>9000</tcp_port>
  <remote_servers><fleet>
    <shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard>
    <shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard>
  </fleet></remote_servers>
</clickhouse>
"""
# Tables are made of the whole definition; engines are plain, since replication does not run in this engine.
RUN = """
import json, re, sys
from datetime import UTC, datetime
from pathlib import Path
import clickhouse_connect
from tidegate import windows
from tidegate.select import qualifying
from tidegate.telemetry.ingest import ingest_file
from tidegate.telemetry.migrate import definition
from tidegate.telemetry.schema_form import CLIENT_SETTINGS, Form
from tidegate.watermarks import complete_to, last_samples
from tidegate_dsl.model import Clause, Rank, Select

config, file, cluster = sys.argv[1:]
form = Form(cluster or None)
path = f":memory:?config-file={config}"
first = clickhouse_connect.get_client(interface="chdb", path=path)
first.command("CREATE DATABASE tidegate")
client = clickhouse_connect.get_client(interface="chdb", path=path, database="tidegate")
for statement in definition(form):
    plain = re.sub(r"Replicated(\\w*MergeTree)\\('[^']*', '[^']*'(?:, )?(.*?)\\)", r"\\1(\\2)", statement)
    client.command(plain.replace(" ON CLUSTER 'fleet'", ""))
if form.cluster:
    for setting in CLIENT_SETTINGS.items():
        client.set_client_setting(*setting)
report = ingest_file(client, Path(file))
if not form.cluster:
    client.command("INSERT INTO socket_samples SELECT * FROM socket_samples")
clause = Clause(1, "clause")
select = Select("slow", clause, "delivery_rate", 24, 56, "client", (), 6 * 300 * 10**6, 300 * 10**6,
    Rank("bottom", 250_000, None, clause), None, None, None, None, (), 0, None)
end = datetime(2030, 1, 1, tzinfo=UTC)
last = max(last_samples(client, end).values())
mark = complete_to(last, end, windows.timedelta(0), select.step_us)
closed = [windows.close(client, select, mark), windows.close(client, select, mark)]
found = [(m.pop, m.prefix, m.timeline) for m in qualifying(client, select, mark)]
rows = client.query("SELECT * EXCEPT (closed_at) FROM prefix_windows ORDER BY ALL").result_rows
stored = client.query("SELECT count(), uniqExact(cookie, observed_at) FROM socket_samples").result_rows
print(json.dumps([report.added, closed, str(mark), found, [list(map(str, row)) for row in rows], stored]))
"""


def telemetry():
    """Sockets of POPs that lie on different shards, at rates that differ by prefix and window."""
    rows = new_rows(POPS * PREFIXES * POLLS)
    pop, prefix, poll = (each.ravel() for each in np.indices((POPS, PREFIXES, POLLS)))
    rows["observed_at_ns"] = (START_S + poll * STEP_S + 7 * prefix) * 10**9
    rows["pop"] = np.char.add("pop", pop.astype("U2")).astype("S16")
    rows["host"], rows["traffic_class"], rows["cookie"] = b"edge1", 1, np.arange(len(rows))
    address = np.zeros((len(rows), 16), np.uint8)
    address[:, 10:12], address[:, 12:14], address[:, 14] = 0xFF, (198, 18), prefix
    rows["remote_address"] = address.view("V16").reshape(-1)
    rows["remote_prefix_length"] = 120
    rows["delivery_rate"] = np.random.default_rng(7).integers(10**4, 10**7, len(rows))
    rows["bytes_acked"], rows["min_rtt_us"], rows["rtt_us"] = 10**6, 20_000, 30_000
    return rows


def run(tmp_path, cluster):
    config, file = tmp_path / "config.xml", tmp_path / "fleet.pb"
    config.write_text(CONFIGURATION)
    file.write_bytes(telemetry().tobytes())
    ran = subprocess.run(
        [sys.executable, "-c", RUN, config, file, cluster],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_a_cluster_closes_and_selects_what_one_server_does(tmp_path):
    cluster, single = run(tmp_path, "fleet"), run(tmp_path, "")
    added, closed, _, found, rows, stored = single
    assert (added, closed) == (POPS * PREFIXES * POLLS, [POLLS, 0])
    assert len(rows) == POPS * PREFIXES * POLLS
    assert 0 < len(found) < POPS * PREFIXES
    assert stored == [[2 * added, added]]
    assert cluster == single
