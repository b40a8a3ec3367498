"""The tables of docs/scale.md are those that the measured figures give, and follow the fleet's size."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tidegate.scale.assumed import Assumed
from tidegate.scale.measured import MEASURED
from tidegate.scale.sizes import host, sizes
from tidegate.scale.tables import scaled, tables, written_into
from tidegate.schemas.rows import ROW_LENGTH

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/scale.md"
MIGRATIONS = ROOT / "compiler/tidegate/telemetry/migrations"


def run(*arguments):
    command = [sys.executable, "-m", "tidegate.scale", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_document_holds_the_tables_that_the_program_prints():
    document = DOCUMENT.read_text()
    assert written_into(document, tables(Assumed(), MEASURED)) == document
    printed = run()
    assert printed.returncode == 0, printed.stderr
    for table in printed.stdout.strip().split("\n\n"):
        assert table in document


def test_the_defaults_are_those_of_the_roles_and_migrations():
    assumed = Assumed()
    topics = yaml.safe_load((ROOT / "roles/kafka_topics/defaults/main.yml").read_text())
    collector = yaml.safe_load((ROOT / "roles/collector/defaults/main.yml").read_text())
    assert topics["kafka_topics_config"]["retention.ms"] == assumed.kafka_days * 86_400_000
    assert topics["kafka_topics_replication_factor"] == assumed.kafka_replicas
    assert topics["kafka_topics_partitions"] == assumed.kafka_partitions
    assert collector["collector_interval"] == f"{assumed.interval:g}s"
    samples = (MIGRATIONS / "0001_socket_samples.sql").read_text()
    assert re.search(r"TTL received_at \+ INTERVAL (\d+) DAY", samples)[1] == f"{assumed.store_days:g}"
    migrations = "".join(each.read_text() for each in sorted(MIGRATIONS.glob("*.sql")))
    windows = re.search(r"CREATE TABLE IF NOT EXISTS prefix_windows\n.*?;", migrations, re.DOTALL)[0]
    assert "TTL" not in windows


def test_every_figure_says_what_measures_it():
    assert MEASURED["row_bytes"] == ROW_LENGTH
    for figure in MEASURED.figures.values():
        assert (ROOT / figure.command).is_file(), figure


def test_ten_pops_by_hand():
    ten = sizes(10, Assumed(), MEASURED)
    assert ten.rows_per_second == 10 * 8 * 10_000 / 10
    assert ten.raw_bytes_per_second == 80_000 * 506
    assert ten.wire_bytes_per_second == pytest.approx(80_000 * 64.3)
    assert ten.kafka_bytes == pytest.approx((80_000 * 64.3 * 259_200 + 12 * 2**30) * 3)
    assert ten.store_bytes == pytest.approx(80_000 * 345_600 * 65.35 * 2 / 0.6)
    assert ten.windows_bytes == pytest.approx(10 * 2_000 * 2 * (288 * 30 * 9.91 + 2 * 81.5) * 2 / 0.6)
    assert ten.closing == pytest.approx(80_000 * 300 * 2 * 0.411e-6 + 10 * 2_000 * 2 * 6.46e-6)
    assert ten.selecting == pytest.approx(10 * 2_000 * 2 * 3.01e-6)


@given(
    pops=st.integers(1, 2_000),
    sample=st.integers(1, 1_000),
    hosts=st.integers(1, 100),
    views=st.integers(1, 9),
)
def test_more_of_anything_never_takes_less(pops, sample, hosts, views):
    assumed = Assumed(hosts_per_pop=hosts, sample=sample, views=views)
    less = sizes(pops, assumed, MEASURED)
    for more in (
        sizes(pops + 1, assumed, MEASURED),
        sizes(pops, replace(assumed, hosts_per_pop=hosts + 1), MEASURED),
        sizes(pops, replace(assumed, views=views + 1), MEASURED),
        sizes(pops, replace(assumed, store_days=assumed.store_days + 1), MEASURED),
    ):
        assert more.rows_per_second >= less.rows_per_second
        assert more.kafka_bytes >= less.kafka_bytes
        assert more.store_bytes >= less.store_bytes
        assert more.closing >= less.closing
        assert more.machines >= less.machines
        assert more != less


def test_sampling_saves_sending_and_not_the_walk():
    every, tenth = host(Assumed(), MEASURED), host(Assumed(sample=10), MEASURED)
    assert tenth.shipping == pytest.approx(every.shipping / 10)
    assert tenth.bpf == every.bpf > 0


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0.0 B"), (999, "999 B"), (999.6, "1.0 kB"), (9_960, "10 kB"), (4.05e9, "4.0 GB")]
)
def test_quantities_are_rounded_to_what_is_known(value, text):
    assert scaled(value, "B") == text


def test_another_fleet_and_a_document_without_places(tmp_path):
    printed = run("--pops", 40, "--hosts-per-pop", 12, "--sockets-per-host", 30_000, "--sample", 10)
    assert "| rows | 144 k/s |" in printed.stdout
    assert run("--interval", 0).returncode == 2
    bare = tmp_path / "bare.md"
    bare.write_text("# nothing\n")
    refused = run("--write", bare)
    assert (refused.returncode, bare.read_text()) == (2, "# nothing\n")
    assert "places for" in refused.stderr
    copy = tmp_path / "scale.md"
    copy.write_text(DOCUMENT.read_text())
    assert run("--write", copy, "--pops", 7).returncode == 0
    assert "| 7 POPs |" in copy.read_text()
