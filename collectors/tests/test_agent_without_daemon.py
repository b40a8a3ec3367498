"""One-shot commands: what they say of a fresh host, of BPF that a daemon left, and of what they may not see."""

import json
import signal

import pytest

pytestmark = pytest.mark.root
CLAIM = "198.18.7.0/24"
BBR = {"congestion_control": "bbr", "initcwnd": 40}
UNPRIVILEGED = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def status(host, exit_code, under=()):
    done = host.agent("status", "--json", under=under, check=False)
    assert done.returncode == exit_code, done.stdout + done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_fresh_host_matches_with_nothing_applied(host):
    found, _ = status(host, 0)
    assert (found["generation"], found["matches"], found["claims"], found["surplus"]) == (None, True, [], [])
    assert "nothing is applied" in host.agent("status").stdout
    assert not (host.directory / "state").exists()


def test_a_daemon_says_the_same_of_a_fresh_host_and_not_of_one_whose_file_is_gone(daemon):
    daemon.start()
    answer = daemon.ask("status")
    assert (answer.exit_code, answer.document["matches"], answer.document["generation"]) == (0, True, None)
    assert not answer.document["steering_file"]["present"]
    daemon.host.steer((CLAIM, BBR))
    daemon.apply()
    (daemon.host.directory / "steering.json").unlink()
    answer = daemon.ask("status")
    assert (answer.exit_code, answer.document["matches"]) == (2, True)
    assert "steering.json" in answer.message


def test_routes_that_stand_without_a_steering_file_do_not_match(host):
    host.steer((CLAIM, BBR))
    host.apply()
    (host.directory / "steering.json").unlink()
    found, _ = status(host, 1)
    assert found["generation"] is None
    assert [each.split()[0] for each in found["surplus"]] == [CLAIM]


@pytest.fixture
def left(bpf_daemon):
    """A host that a daemon steered by BPF, pinned at a place of its own, until it was killed."""
    bpf_daemon.host.steer((CLAIM, BBR))
    bpf_daemon.apply()
    bpf_daemon.end(signal.SIGKILL)
    yield bpf_daemon
    bpf_daemon.host.agent("flush", "--pins", bpf_daemon.pins)


@pytest.mark.parametrize("command", ["apply", "status"])
def test_bpf_that_a_daemon_left_elsewhere_is_not_overlooked(left, command):
    done = left.host.agent(command, check=False)
    assert done.returncode == 3
    assert "steered by BPF" in done.stderr
    assert left.host.routes(CLAIM) == []


def test_a_dry_flush_names_what_a_flush_then_removes(left):
    host, pins = left.host, left.pins
    foreseen = host.agent("flush", "--dry-run")
    assert f"bpf: would remove {pins}\n" in foreseen.stdout
    assert (pins / "link").exists()
    done = json.loads(host.agent("flush", "--json").stdout)
    assert (done["changed"], done["bpf_removed"]) == (True, [str(pins)])
    assert not pins.exists()
    again = json.loads(host.agent("flush", "--json").stdout)
    assert (again["changed"], again["bpf_removed"]) == (False, [])
    assert not (host.directory / "state" / "bpf.json").exists()


def test_a_daemon_told_of_another_place_leaves_nothing_at_the_one_before(left, cgroup):
    elsewhere = left.pins.with_name("elsewhere")
    left.start("--backend", "bpf", "--cgroup", cgroup, "--pins", elsewhere)
    assert not left.pins.exists()
    assert left.states() == {CLAIM: "holds"}
    left.end(signal.SIGKILL)
    assert json.loads(left.host.agent("flush", "--json").stdout)["bpf_removed"] == [str(elsewhere)]


def test_who_may_not_look_at_bpf_is_not_told_that_all_matches(host, bpf_files):
    """The directory of BPF's file system is root's."""
    bpf_files.chmod(0o700)
    state = host.directory / "state"
    state.mkdir()
    pins = bpf_files / "tidegate"
    (state / "bpf.json").write_text(json.dumps({"pins": [str(pins)]}))
    host.steer((CLAIM, BBR))
    host.apply()
    for directory in (host.directory, *host.directory.parents[:3]):
        directory.chmod(directory.stat().st_mode | 0o055)
    found, said = status(host, 3, under=UNPRIVILEGED)
    assert found["matches"] is None
    assert "cannot be told" in said
    assert "as far as can be seen" in host.agent("status", under=UNPRIVILEGED, check=False).stdout


@pytest.mark.parametrize("content", ["", '{"pins": [7]}', '{"pins": "/"}', "7"])
def test_a_damaged_note_of_places_stops_apply_and_of_a_flush_only_what_needs_it(host, content):
    host.steer((CLAIM, BBR))
    host.apply()
    note = host.directory / "state" / "bpf.json"
    note.write_text(content)
    refused = host.agent("apply", check=False)
    assert refused.returncode == 3
    assert "bpf.json: not what the agent wrote there" in refused.stderr
    flushed = host.agent("flush", check=False)
    assert flushed.returncode == 3
    assert "--pins" in flushed.stderr
    assert host.routes(CLAIM) == []
    note.unlink()
    assert host.agent("flush").returncode == 0
