"""Faults under a running daemon: traffic never stops, and what can be mended is mended."""

import json
import os
import signal
import subprocess

import pytest

pytestmark = pytest.mark.root
CLAIM = "198.18.7.0/24"
BBR = {"congestion_control": "bbr", "initcwnd": 31}
HELD = {"congestion": "bbr", "initcwnd": 31}


@pytest.fixture
def running(daemon, transfer):
    """A daemon that holds a claim."""
    daemon.start()
    daemon.host.steer((CLAIM, BBR))
    daemon.apply()
    assert transfer.flows()
    return daemon


def stands(host, **more):
    found = host.routes(CLAIM)
    return len(found) == 1 and found[0]["metrics"] == [HELD] and found[0] | more == found[0]


def test_killed_it_leaves_all_as_it_is_and_the_next_one_goes_on(running, transfer):
    before = running.host.routes()
    running.end(signal.SIGKILL)
    assert running.host.routes() == before
    assert transfer.flows()
    running.host.ip(f"route del {CLAIM} proto 201")
    running.start()
    assert stands(running.host)
    assert running.status()["matches"]
    assert transfer.flows()


def test_settings_follow_a_default_route_that_moves(running, transfer):
    running.host.ip("route replace default via 192.0.2.65")
    running.awaits(lambda: stands(running.host, gateway="192.0.2.65"))
    assert running.status()["matches"]
    assert transfer.flows()


def test_settings_come_back_with_their_link(running, transfer):
    running.host.ip("link set up0 down")
    running.awaits(lambda: not running.host.routes(CLAIM))
    running.awaits(lambda: running.states() == {CLAIM: "not applied"})
    running.host.ip("link set up0 up")
    running.host.ip("route add default via 192.0.2.1")
    running.awaits(lambda: stands(running.host, gateway="192.0.2.1"))
    running.awaits(lambda: running.status()["matches"])
    assert transfer.flows()


def test_a_link_that_goes_down_leaves_the_claim_to_the_next_way(running, transfer):
    running.host.ip("route add default via 192.0.2.65 metric 100")
    running.host.ip("link set up0 down")
    running.awaits(lambda: stands(running.host, gateway="192.0.2.65"))
    running.host.ip("link set up0 up")
    running.host.ip("route add default via 192.0.2.1")
    running.awaits(lambda: stands(running.host, gateway="192.0.2.1"))
    assert transfer.flows()


@pytest.mark.parametrize(
    "harm",
    [
        f"route del {CLAIM} proto 201",
        f"route replace {CLAIM} via 192.0.2.1 metric 201000000 proto 201 initcwnd 99",
        "route add 203.0.113.0/24 via 192.0.2.1 proto 201",
    ],
)
def test_what_others_do_to_its_routes_is_mended_and_counted(running, transfer, harm):
    before = running.host.routes()
    running.host.ip(harm)
    running.awaits(lambda: running.host.routes() == before)
    running.awaits(lambda: running.status()["drift"]["repaired"] >= 1)
    assert running.status()["matches"]
    assert transfer.flows()


def test_a_default_algorithm_that_others_change_is_mended_and_counted(daemon):
    host = daemon.host
    before = host.algorithm()
    wanted, other = ("reno", before) if before != "reno" else ("bbr", before)
    daemon.start()
    host.steer(default=wanted)
    daemon.apply()
    host.inside("sysctl", "-q", "-w", f"net.ipv4.tcp_congestion_control={other}")
    daemon.awaits(lambda: host.algorithm() == wanted)
    daemon.awaits(lambda: daemon.status()["drift"]["repaired"] == 1)


@pytest.mark.parametrize("text", ["", "{", '{"claims": []}'])
def test_a_corrupted_steering_file_changes_nothing_and_status_says_so(running, transfer, text):
    running.host.steer(text=text)
    refused = running.host.agent("apply", check=False)
    assert (refused.returncode, refused.stdout) == (2, ""), refused.stderr
    assert "steering.json" in refused.stderr
    status = running.host.agent("status", "--json", check=False)
    assert status.returncode == 2
    document = json.loads(status.stdout)
    assert document["matches"]
    assert "steering.json" in document["steering_file"]["error"]
    assert document["generation"] == "0123456789abcdef"
    assert stands(running.host)
    assert transfer.flows()


def test_a_steering_file_that_is_no_file_does_not_hold_the_daemon_up(running):
    path = running.host.directory / "steering.json"
    path.unlink()
    os.mkfifo(path)
    assert "no regular file" in running.apply(exit_code=2)
    assert "no regular file" in running.status()["steering_file"]["error"]


@pytest.fixture
def small_disk(host):
    """The state directory on a file system of 64 KB."""
    state = host.directory / "state"
    state.mkdir()
    host_mount("mount", "-t", "tmpfs", "-o", "size=64k", "none", state)
    yield state
    host_mount("umount", "-l", state)


def host_mount(*argv):
    subprocess.run([str(each) for each in argv], check=True)


def fill(path):
    with path.open("wb", 0) as file:
        while True:
            file.write(bytes(512))


def test_a_full_disk_keeps_the_old_generation_in_the_kernel_and_on_the_disk(small_disk, running, transfer):
    host = running.host
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space"):
        fill(filler)
    host.steer((CLAIM, {"initcwnd": 50}), generation="2222222222222222")
    assert "No space left on device" in running.apply(exit_code=3)
    assert stands(host)
    assert running.status()["generation"] == "0123456789abcdef"
    assert transfer.flows()
    running.end(signal.SIGKILL)
    running.start()
    assert running.status()["generation"] == "0123456789abcdef"
    filler.unlink()
    assert running.apply()["generation"] == "2222222222222222"
    assert transfer.flows()


def test_a_damaged_ledger_leaves_the_kernel_as_it_is_and_is_said(running, transfer):
    ledger = running.host.directory / "state" / "generations.json"
    running.end(signal.SIGTERM)
    ledger.write_text("{")
    running.start()
    status = running.status()
    assert not status["matches"]
    assert "generations.json" in status["trouble"]
    assert stands(running.host)
    assert transfer.flows()
    running.apply()
    assert running.status()["matches"]


def test_a_second_daemon_does_not_start(running):
    host = running.host
    second = host.inside(*host.argv("run"), "--backend", "routes", check=False)
    assert second.returncode == 3
    assert "another run holds it" in second.stderr
    assert running.status()["matches"]


def test_a_policy_cgroup_that_is_missing_is_said_and_routes_steer_instead(daemon, transfer):
    cgroup = daemon.host.directory / "no-cgroup"
    forced = subprocess.run(daemon.argv("--cgroup", cgroup, "--backend", "bpf"), check=False)
    assert forced.returncode == 3
    daemon.start("--cgroup", cgroup, "--backend", "auto")
    daemon.host.steer((CLAIM, BBR))
    daemon.apply()
    status = daemon.status()
    assert status["backend"] == "routes"
    assert str(cgroup) in status["backend_because"]
    assert stands(daemon.host)
    assert transfer.flows()


WITHOUT_LIBBPF = (
    'mount --bind /dev/null "$(ldconfig -p | sed -n "s/.*libbpf.so.1 .*=> //p" | head -n 1)" && exec "$@"'
)


def test_a_host_without_libbpf_is_steered_by_routes_and_told_what_it_lacks(daemon, cgroup, bpf_files):
    assert daemon.pins.parent == bpf_files
    daemon.under = ("unshare", "--mount", "sh", "-c", WITHOUT_LIBBPF, "sh")
    daemon.start("--backend", "auto", "--cgroup", cgroup)
    daemon.host.steer((CLAIM, BBR))
    daemon.apply()
    assert stands(daemon.host)
    assert "libbpf.so.1 is not installed" in daemon.status()["backend_because"]
    assert not list(bpf_files.glob("tidegate*"))


def test_a_flush_without_a_daemon_ends_what_bpf_left_and_says_where_it_cannot(bpf_daemon):
    host, pins = bpf_daemon.host, bpf_daemon.pins
    host.steer((CLAIM, BBR))
    bpf_daemon.apply()
    bpf_daemon.end(signal.SIGKILL)
    lacking = ("unshare", "--mount", "sh", "-c", WITHOUT_LIBBPF, "sh")
    failed = host.agent("flush", "--pins", pins, under=lacking, check=False)
    assert failed.returncode == 3
    assert "libbpf.so.1 is not installed" in failed.stderr
    assert failed.stdout == "routes: 0 unchanged\n"
    assert (pins / "link").exists()
    host.agent("flush", "--pins", pins)
    assert not pins.exists()


@pytest.fixture
def by_bpf(bpf_daemon):
    """A daemon that holds a claim by BPF."""
    bpf_daemon.host.steer((CLAIM, BBR))
    bpf_daemon.apply()
    assert bpf_daemon.states() == {CLAIM: "holds"}
    yield bpf_daemon
    assert bpf_daemon.ask("flush").exit_code == 0
    assert not list(bpf_daemon.pins.glob("*"))


@pytest.mark.parametrize("pin", ["policy", "trie", "counters", "program", "link"])
def test_what_others_unpin_is_mended_and_counted(by_bpf, transfer, pin):
    (by_bpf.pins / pin).unlink()
    by_bpf.awaits((by_bpf.pins / pin).exists)
    by_bpf.awaits(lambda: by_bpf.status()["drift"]["repaired"] >= 1)
    by_bpf.awaits(lambda: by_bpf.status()["matches"])
    assert transfer.flows()


def test_a_change_of_routing_is_nothing_to_what_bpf_holds(by_bpf):
    by_bpf.host.ip("route replace default via 192.0.2.65")
    (by_bpf.pins / "program").unlink()
    by_bpf.awaits(lambda: by_bpf.status()["drift"]["repaired"] >= 1)
    assert by_bpf.status()["drift"]["followed"] == 0


def test_killed_it_leaves_bpf_at_work_and_the_next_one_goes_on(by_bpf, transfer, cgroup):
    by_bpf.end(signal.SIGKILL)
    assert (by_bpf.pins / "link").exists()
    assert transfer.flows()
    by_bpf.start("--backend", "bpf", "--cgroup", cgroup)
    assert by_bpf.states() == {CLAIM: "holds"}
    assert transfer.flows()


def test_a_policy_cgroup_that_goes_away_is_said_and_the_next_one_is_taken(by_bpf, transfer, cgroup):
    cgroup.rmdir()
    by_bpf.awaits(lambda: by_bpf.status()["trouble"])
    assert not by_bpf.status()["matches"]
    assert transfer.flows()
    cgroup.mkdir()
    by_bpf.awaits(lambda: by_bpf.status()["matches"])
    assert transfer.flows()


def test_routes_give_way_to_bpf_and_come_back_without_a_trace_of_the_other(by_bpf, cgroup):
    host = by_bpf.host
    assert host.routes(CLAIM) == []
    by_bpf.end(signal.SIGTERM)
    by_bpf.start("--backend", "routes")
    assert stands(host)
    assert not list(by_bpf.pins.glob("*"))
    by_bpf.end(signal.SIGTERM)
    by_bpf.start("--backend", "bpf", "--cgroup", cgroup)
    assert host.routes(CLAIM) == []
    assert by_bpf.states() == {CLAIM: "holds"}


def test_a_ledger_that_cannot_be_replaced_leaves_the_kernel_at_the_generation_before(running, transfer):
    host = running.host
    ledger = host.directory / "state" / "generations.json"
    before = ledger.read_bytes()
    ledger.unlink()
    ledger.mkdir()
    host.steer((CLAIM, {"initcwnd": 50}), generation="2222222222222222")
    assert "generations.json: Is a directory" in running.apply(exit_code=3)
    assert stands(host)
    assert running.status()["generation"] == "0123456789abcdef"
    ledger.rmdir()
    ledger.write_bytes(before)
    running.end(signal.SIGKILL)
    running.start()
    assert (running.status()["generation"], running.status()["matches"]) == ("0123456789abcdef", True)
    assert transfer.flows()
