"""Which reader a collector has on the kernel that it finds, and what it says where that is not BPF."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tidegate_edge.preflight import version_of

COLLECTOR = Path(sys.executable).with_name("tidegate-collector")
FIRST_WITH_COOKIES = (5, 12)


@pytest.mark.root
def test_check_says_whether_bpf_reads_here_and_why_not():
    done = subprocess.run([COLLECTOR, "check", "--json"], capture_output=True, text=True, check=False)
    found = {each["name"]: each for each in json.loads(done.stdout)}
    assert found["reader netlink"]["state"] == "ok", found
    reader = found["reader bpf"]
    if version_of(os.uname().release) >= FIRST_WITH_COOKIES:
        assert reader["state"] == "ok", reader
        return
    assert reader["state"] == "degraded"
    assert f"the kernel refuses the program (Linux {os.uname().release}; it takes 5.12): " in reader["detail"]
    assert reader["way_out"] == "`--reader netlink` reads the same rows"


@pytest.mark.root
def test_auto_reads_sockets_on_any_kernel_and_says_why_it_is_not_by_bpf():
    done = subprocess.run([COLLECTOR, "once", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    by_bpf = version_of(os.uname().release) >= FIRST_WITH_COOKIES
    assert done.stderr.startswith("reader netlink: no BPF: the kernel refuses") != by_bpf
