"""A host's health: what the kernel's files say, and what a real load does to a row."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidegate_edge.errors import MISSING_PART, Failure
from tidegate_edge.health_counters import (
    Counters,
    CpuTime,
    Pressure,
    parse_pressure,
    parse_schedstat,
    parse_stat,
    read_counters,
)
from tidegate_edge.health_rows import make_row
from tidegate_edge.schemas.hosts import HOSTS, PRESSURE, STAT
from tidegate_edge.schemas.hosts_pb2 import HostRow

COLLECTOR = Path(sys.executable).with_name("tidegate-collector")
HEALTH = [COLLECTOR, "health", "--pop", "ams1", "--host", "edge1.ams1.example"]

STAT_TEXT = (
    b"cpu  100 20 30 4000 50 6 7 8 90 10\n"
    b"cpu0 50 10 15 2000 25 3 3 4 45 5\ncpu1 0 0 0 0 0 0 0 0 0 0\nintr 5\n"
)
SCHEDSTAT_TEXT = (
    b"version 15\ntimestamp 4295\ncpu0 1 2 3 4 5 6 7000 8000000 9\ndomain0 3 0 0\n"
    b"cpu1 0 0 0 0 0 0 5 2000000 7\ndomain0 3 1 2\n"
)


def run(*options):
    return subprocess.run([*HEALTH, *options], capture_output=True, text=True, check=False, timeout=60)


def test_the_kernels_files():
    assert parse_pressure(
        b"some avg10=63.49 avg60=57.07 avg300=0.38 total=2396443785\nfull avg10=0.00 total=0\n"
    ) == Pressure(2_396_443_785, (6349, 5707, 38))
    assert parse_stat(STAT_TEXT, 100) == CpuTime(
        2, total=42_210_000, idle=40_500_000, irq=60_000, softirq=70_000, steal=80_000
    )
    assert parse_schedstat(SCHEDSTAT_TEXT) == 10_000


@given(st.binary(max_size=200))
def test_a_file_that_is_not_as_documented_is_no_value(text):
    for parse in (parse_pressure, parse_stat, parse_schedstat):
        assert parse(text) is None


def test_this_hosts_files_are_as_documented():
    counters = read_counters()
    assert counters.cpu is not None
    assert counters.cpu.cpus >= 1
    assert (counters.pressure is None) == (not Path("/proc/pressure/cpu").exists())
    assert (counters.run_delay_us is None) == (not Path("/proc/schedstat").exists())


def test_a_host_that_tells_nothing(tmp_path):
    with pytest.raises(Failure) as failure:
        read_counters(tmp_path)
    assert failure.value.exit_code == MISSING_PART


numbers = st.integers(0, 2**60)
readings = st.builds(
    Counters,
    st.none() | st.builds(Pressure, numbers, st.tuples(*[st.integers(0, 10_000)] * 3)),
    st.none() | st.builds(CpuTime, st.integers(1, 1024), *[numbers] * 5),
    st.none() | numbers,
)


@given(readings, readings, st.integers(1, 10**9))
def test_no_row_says_more_than_its_interval_or_what_was_not_measured(before, after, observed_us):
    row = make_row("ams1", "h", before, after, observed_us=observed_us, observed_at_ns=1)
    (row,) = HOSTS.read(row.tobytes())
    assert row["cpu_stalled_us"] <= observed_us
    assert bool(row["measured"] & PRESSURE) == bool(before.pressure and after.pressure)
    if not row["measured"] & STAT:
        assert not any(row[name] for name in ("cpus", "cpu_time_us", "steal_us", "softirq_us"))
    assert row["steal_us"] <= 2**60


def test_a_row_is_plain_protobuf():
    row = make_row("ams1", "h", read_counters(), read_counters(), observed_us=7, observed_at_ns=11)
    message = HostRow.FromString(row.tobytes()[2:])  # behind the two bytes of its length
    assert (message.schema_version, message.observed_us, message.observed_at_ns) == (1, 7, 11)
    assert message.pop.rstrip(b"\0") == b"ams1"


@pytest.mark.skipif(not Path("/proc/pressure/cpu").exists(), reason="this kernel has no PSI")
def test_tasks_that_wait_for_a_cpu_show_in_the_row():
    """Three busy loops on one CPU: somebody waits all the time, of which the kernel may still owe the last 2 s."""
    loops = [subprocess.Popen(["taskset", "-c", "0", "sh", "-c", "while :; do :; done"]) for _ in range(3)]
    try:
        done = run("--interval", "5s", "--count", "1", "--json")
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert row["observed_us"] >= 5_000_000
    assert 0.55 < row["cpu_stalled_us"] / row["observed_us"] <= 1
    assert row["cpu_time_us"] - row["idle_us"] > 0.7 * row["observed_us"]


def test_rows_append_to_a_file_and_another_kind_of_file_is_left_as_it_is(tmp_path):
    out = tmp_path / "health.pb"
    for _ in range(2):
        assert run("--interval", "10ms", "--count", "1", "--out", str(out)).returncode == 0
    first, second = HOSTS.read(out.read_bytes())
    assert first["observed_at_ns"] < second["observed_at_ns"]
    foreign = tmp_path / "policy.tide"
    foreign.write_bytes(b"edition 2026.1\n" * 20)
    refused = run("--interval", "10ms", "--count", "1", "--out", str(foreign))
    assert refused.returncode == 2
    assert "not a HostRow" in refused.stderr
    assert foreign.read_bytes() == b"edition 2026.1\n" * 20
