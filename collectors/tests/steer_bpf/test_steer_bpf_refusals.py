"""What a host must have, and what is refused: the message says what is missing, and nothing changes."""

import subprocess
import sys
from ipaddress import ip_network

import pytest
from tidegate_edge.errors import Failure
from tidegate_edge.steer.bpf import BpfBackend, Unavailable, program
from tidegate_edge.steer.claims import Settings


@pytest.mark.root
def test_too_many_prefixes_are_refused_and_those_before_stay(backend, settings):
    many = {ip_network((0x0A000000 + 16 * number, 28)): Settings("bbr") for number in range(65_536)}
    with pytest.raises(Failure, match="65536 prefixes are more than the 65535 of a generation"):
        backend.apply("fedcba9876543210", many)
    assert backend.read().settings == settings


@pytest.mark.root
def test_where_nothing_is_attached_apply_and_why_say_so(ground, settings):
    for call in (lambda: ground.backend().apply("0123456789abcdef", settings), ground.backend().why):
        with pytest.raises(Unavailable, match="nothing is attached: no maps are pinned in") as failure:
            call()
        assert failure.value.exit_code == 3
    ground.backend().remove()


@pytest.mark.root
def test_a_place_that_is_no_bpf_file_system_is_refused(ground, tmp_path):
    with pytest.raises(Unavailable, match="is not in a BPF file system: mount one by"):
        BpfBackend(ground.cgroup, tmp_path / "pins").attach()
    assert not (tmp_path / "pins").exists()


@pytest.mark.root
def test_without_the_capabilities_attach_says_which(ground, loader):
    code = loader.replace("backend.attach()", "sys.tracebacklimit = 0; backend.attach()")
    argv = ["setpriv", "--bounding-set", "-bpf,-perfmon,-sys_admin,-net_admin", sys.executable, "-c", code]
    done = subprocess.run([*argv, ground.cgroup, ground.pins], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no BPF: it takes CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, which this process lacks" in done.stderr


@pytest.mark.root
def test_three_capabilities_are_all_that_it_takes(ground, loader):
    argv = ["setpriv", "--bounding-set", "-all,+bpf,+net_admin,+perfmon", sys.executable, "-c"]
    argv += [
        "\n".join(
            [
                *loader.splitlines()[:-2],
                "print(backend.read().variant, backend.why(), backend.standing().missing)",
                "backend.apply('fedcba9876543210', {})",
                "backend.attach()",
                "backend.remove()",
            ]
        )
    ]
    done = subprocess.run([*argv, ground.cgroup, ground.pins], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "queued () ()\n", "")


def test_an_installation_without_the_object(monkeypatch, tmp_path):
    monkeypatch.setattr(program, "OBJECT", tmp_path / "steer.bpf.o")
    with pytest.raises(
        Unavailable, match=r"this installation has no steer\.bpf\.o: it was built without clang"
    ):
        program.load_best({}, pytest.fail)
