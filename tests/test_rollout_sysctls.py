"""The module `sysctls` against the kernel's own parameters, in a network namespace of the test's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = Path(__file__).resolve().parents[1] / "plugins/modules/sysctls.py"
IDLE = "net.ipv4.tcp_slow_start_after_idle"
RMEM = "net.ipv4.tcp_rmem"
# The kernel takes 0 and 1 only (net/ipv4/sysctl_net_ipv4.c).
REFUSED = {"net.ipv4.tcp_timestamps": 4_000_000_000_000}

pytestmark = pytest.mark.root


class Host:
    """A network namespace, and folders in place of the host's."""

    def __init__(self, folder: Path, process: subprocess.Popen) -> None:
        self.boot = folder / "sysctl.d/60-tidegate-test.conf"
        self.memory = folder / "memory/test.conf"
        self._folder = folder
        self._enter = ["nsenter", "--target", str(process.pid), "--net"]

    def run(self, *, check: bool = False, **given) -> dict:
        """What the module answers."""
        arguments = {
            "name": "test",
            "boot_directory": str(self.boot.parent),
            "memory_directory": str(self.memory.parent),
            "_ansible_check_mode": check,
            "_ansible_remote_tmp": str(self._folder),
            **given,
        }
        ran = subprocess.run(
            [*self._enter, sys.executable, MODULE],
            input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
            capture_output=True,
            text=True,
            check=False,
        )
        return json.loads(ran.stdout)

    def read(self, key: str) -> str:
        said = subprocess.run([*self._enter, "sysctl", "-n", key], capture_output=True, text=True, check=True)
        return " ".join(said.stdout.split())

    def write(self, key: str, value: str) -> None:
        subprocess.run([*self._enter, "sysctl", "-qw", f"{key}={value}"], check=True)


@pytest.fixture
def host(tmp_path):
    with subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo; exec sleep 600"], stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        yield Host(tmp_path, process)
        process.kill()


def test_what_was_set_is_put_back_and_leaves_no_trace(host):
    before = {IDLE: host.read(IDLE), RMEM: host.read(RMEM)}
    values = {IDLE: 0, RMEM: "4096 262144 33554432"}
    done = host.run(values=values)
    assert (done["changed"], done["before"]) == (True, before)
    assert (host.read(IDLE), host.read(RMEM)) == ("0", "4096 262144 33554432")
    assert f"{IDLE} = 0\n" in host.boot.read_text()
    assert not host.run(values=values)["changed"]
    assert host.run(state="absent")["changed"]
    assert {IDLE: host.read(IDLE), RMEM: host.read(RMEM)} == before
    assert not host.boot.exists()
    assert not host.memory.parent.exists()
    assert not host.run(state="absent")["changed"]


def test_what_is_no_longer_named_is_put_back_and_the_rest_stays(host):
    before = host.read(RMEM)
    host.run(values={IDLE: 0, RMEM: "4096 262144 33554432"})
    assert host.run(values={IDLE: 0})["changed"]
    assert (host.read(IDLE), host.read(RMEM)) == ("0", before)
    assert RMEM not in host.boot.read_text() + host.memory.read_text()


def test_what_somebody_else_has_set_since_stays(host):
    host.run(values={RMEM: "4096 262144 33554432"})
    host.write(RMEM, "8192 131072 4194304")
    assert host.run(state="absent")["changed"]
    assert host.read(RMEM) == "8192 131072 4194304"
    assert not host.memory.exists()


def test_check_mode_shows_the_change_and_makes_none(host):
    before = host.read(IDLE)
    done = host.run(values={IDLE: 0}, check=True)
    assert done["changed"]
    assert (done["diff"]["before"], done["diff"]["after"]) == (f"{IDLE} = {before}\n", f"{IDLE} = 0\n")
    assert host.read(IDLE) == before
    assert not host.boot.exists()
    assert not host.memory.exists()


@pytest.mark.parametrize(
    "wrong",
    [REFUSED, {"net.ipv4.no_such_thing": 1}, {"../../etc/passwd": 1}],
    ids=["refused", "unknown", "no name"],
)
def test_all_are_set_or_none(host, wrong):
    before = host.read(IDLE)
    failed = host.run(values={IDLE: 0, **wrong})
    assert failed["failed"]
    assert next(iter(wrong)) in failed["msg"]
    assert host.read(IDLE) == before
    assert not host.boot.exists()
    assert not host.memory.exists()


def test_what_is_optional_may_be_refused(host):
    (key,) = REFUSED
    before = host.read(key)
    done = host.run(
        values={IDLE: 0, **REFUSED, "net.ipv4.no_such_thing": 1}, optional=[key, "net.ipv4.no_such_thing"]
    )
    assert done["refused"].keys() == {key, "net.ipv4.no_such_thing"}
    assert len(done["warnings"]) == 2
    assert (host.read(IDLE), host.read(key)) == ("0", before)
    assert key not in host.boot.read_text()
    assert not host.run(values={IDLE: 0, **REFUSED}, optional=[key])["changed"]
    assert host.run(state="absent")["changed"]
    assert (host.read(IDLE), host.read(key)) == ("1", before)


def test_what_was_set_is_put_back_where_the_kernel_refuses_what_is_to_follow(host):
    (key,) = REFUSED
    before = host.read(key)
    ours = "0" if before != "0" else "1"
    host.run(values={key: ours, IDLE: 0}, optional=[key])
    assert host.read(key) == ours
    done = host.run(values={**REFUSED, IDLE: 0}, optional=[key])
    assert done["refused"].keys() == {key}
    assert host.read(key) == before
    assert key not in host.boot.read_text() + host.memory.read_text()
