"""The agent where its state, its lock or its output is broken: routes never wait for that."""

import fcntl
import json
import stat
import subprocess

import pytest
from tidegate_edge.errors import MISSING_PART, Failure
from tidegate_edge.steer.turn import turn_to_read, turn_to_write

root = pytest.mark.root
BBR = {"congestion_control": "bbr"}
CLAIM = "198.18.7.0/24"


def steered(host):
    """A host with a route and a default of the agent's; gives what it had before."""
    before = host.routes(), host.algorithm()
    host.steer((CLAIM, BBR), default="reno" if before[1] != "reno" else "cubic")
    host.apply()
    assert (host.routes(), host.algorithm()) != before
    return before


def memory(host):
    return host.directory / "state" / "default.json"


@root
@pytest.mark.parametrize("content", ["", "{", "[]"])
def test_a_damaged_memory_stops_neither_flush_nor_apply(host, content):
    routes, _ = steered(host)
    memory(host).write_text(content)
    flushed = host.agent("flush", "--json", check=False)
    assert flushed.returncode == 3
    assert json.loads(flushed.stdout)["removed"] == [CLAIM]
    assert "default.json: not what the agent wrote there" in flushed.stderr
    assert host.routes() == routes
    assert host.apply(exit_code=3)["added"] == [CLAIM]
    assert host.settings(CLAIM) == {"congestion": "bbr"}


@root
def test_a_remembered_algorithm_that_is_gone_does_not_stop_flush(host):
    routes, _ = steered(host)
    kept = json.dumps({"before": "nosuch", "set": host.algorithm()})
    memory(host).write_text(kept)
    flushed = host.agent("flush", check=False)
    assert flushed.returncode == 3
    assert "the kernel has no congestion control algorithm `nosuch`" in flushed.stderr
    assert host.routes() == routes
    assert json.loads(memory(host).read_text()) == json.loads(kept)


@root
def test_a_read_only_state_directory_does_not_stop_flush(host):
    before = steered(host)
    state = host.directory / "state"
    read_only = f'mount --bind {state} {state} && mount -o remount,bind,ro {state} && exec "$@"'
    flushed = host.agent("flush", under=["sh", "-c", read_only, "sh"], check=False)
    assert flushed.returncode == 3
    assert "Read-only file system; going on without the lock" in flushed.stderr
    assert "must be writable" in flushed.stderr
    assert (host.routes(), host.algorithm()) == before


@root
def test_a_state_directory_that_is_a_file_does_not_stop_flush(host):
    routes, _ = steered(host)
    memory(host).unlink()
    (host.directory / "state" / "agent.lock").unlink()
    memory(host).parent.rmdir()
    memory(host).parent.write_text("")
    flushed = host.agent("flush")
    assert "going on without the lock" in flushed.stderr
    assert host.routes() == routes


@root
def test_a_full_disk_leaves_no_rubbish_and_changes_no_default(host):
    before = host.algorithm()
    host.steer((CLAIM, BBR), default="reno" if before != "reno" else "cubic")
    state = host.directory / "state"
    state.mkdir()
    full = (
        f"mount -t tmpfs -o size=4k none {state} && echo . > {state}/filler; "
        f'"$@"; code=$?; ls -A {state} >&2; exit $code'
    )
    ran = host.agent("apply", under=["sh", "-c", full, "sh"], check=False)
    assert ran.returncode == 3
    assert "default.json: No space left on device" in ran.stderr
    assert "writable" not in ran.stderr
    assert ran.stderr.split()[-2:] == ["agent.lock", "filler"]
    assert host.algorithm() == before
    assert host.settings(CLAIM) == {"congestion": "bbr"}


@root
def test_a_run_that_waited_applies_what_the_file_says_then(host):
    steered(host)
    argv = ["ip", "netns", "exec", host.name, *host.argv("apply"), "--json"]
    with (host.directory / "state" / "agent.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = subprocess.Popen(argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert waiting.stderr.readline() == "tidegate-agent: waiting for another run\n"
        host.steer(("198.18.8.0/24", BBR))
    document = json.loads(waiting.communicate(timeout=30)[0])
    assert (document["added"], document["removed"]) == (["198.18.8.0/24"], [CLAIM])


@root
def test_only_the_owner_may_hold_others_up_and_all_may_read_the_memory(host):
    lock = host.directory / "state" / "agent.lock"
    lock.parent.mkdir()
    lock.touch(mode=0o644)
    host.steer(default="reno" if host.algorithm() != "reno" else "cubic")
    host.agent("apply", under=["sh", "-c", 'umask 077 && exec "$@"', "sh"])
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    assert stat.S_IMODE(memory(host).stat().st_mode) == 0o644


@root
@pytest.mark.parametrize(
    ("output", "words"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
def test_a_report_that_cannot_be_written_is_said(host, output, words):
    host.steer((CLAIM, BBR))
    ran = host.agent("apply", under=["sh", "-c", f'exec "$@" {output}', "sh"], check=False)
    assert ran.returncode == 3
    assert ran.stderr.startswith(f"tidegate-agent: the report could not be written: {words}\nhelp: ")
    assert "Traceback" not in ran.stderr
    assert host.settings(CLAIM) == {"congestion": "bbr"}


@pytest.mark.parametrize("turn", [turn_to_read, turn_to_write])
def test_a_turn_is_not_awaited_for_ever(tmp_path, turn):
    with (
        turn_to_write(tmp_path),
        pytest.raises(Failure, match="another run holds it") as caught,
        turn(tmp_path, patience_seconds=0.1),
    ):
        pytest.fail("two turns at once")
    assert caught.value.exit_code == MISSING_PART
    with turn(tmp_path, patience_seconds=0):
        pass


def test_those_who_read_do_not_wait_for_each_other(tmp_path):
    with turn_to_write(tmp_path):
        pass
    with turn_to_read(tmp_path), turn_to_read(tmp_path, patience_seconds=0):
        pass
