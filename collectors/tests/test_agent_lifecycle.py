"""Generations of a daemon: they come, wait to be confirmed, and go back; a transfer runs through all of it."""

import json
import signal

import pytest

pytestmark = pytest.mark.root
CLAIM = "198.18.7.0/24"
FIRST, SECOND, THIRD = "1111111111111111", "2222222222222222", "3333333333333333"


def steer(host, generation, window):
    host.steer((CLAIM, {"congestion_control": "bbr", "initcwnd": window}), generation=generation)


def applied(daemon, generation, window, seconds=None):
    steer(daemon.host, generation, window)
    return daemon.apply(confirm_within_ns=seconds and seconds * 10**9)


def window(host):
    return host.settings(CLAIM)["initcwnd"]


@pytest.fixture
def running(daemon, transfer):
    """A daemon that holds a confirmed generation."""
    daemon.start()
    assert applied(daemon, FIRST, 31)["added"] == [CLAIM]
    assert transfer.flows()
    return daemon


def test_a_daemon_that_was_never_told_anything_leaves_the_kernel_alone(daemon):
    host = daemon.host
    host.steer((CLAIM, {"initcwnd": 31}))
    host.agent("apply")
    before = host.routes()
    daemon.start()
    assert daemon.status()["generation"] is None
    assert host.routes() == before
    assert daemon.end(signal.SIGTERM) == 0
    assert host.routes() == before


def test_a_generation_that_nobody_confirms_goes_back_by_itself(running, transfer):
    document = applied(running, SECOND, 32, 2)
    assert (document["pending"]["generation"], document["pending"]["reverts_to"]) == (SECOND, FIRST)
    running.awaits(lambda: running.status()["reverted"] == 1)
    assert window(running.host) == 31
    status = running.status()
    assert (status["generation"], status["pending"], status["matches"]) == (FIRST, None, True)
    assert running.ask("confirm").exit_code == 1
    assert transfer.flows()


def test_a_generation_that_is_confirmed_stays(running, transfer):
    applied(running, SECOND, 32, 600)
    assert running.status()["pending"]["generation"] == SECOND
    assert running.ask("confirm").document["generation"] == SECOND
    assert running.status()["pending"] is None
    running.end(signal.SIGKILL)
    running.start()
    assert (running.status()["generation"], window(running.host)) == (SECOND, 32)
    assert transfer.flows()


def test_the_first_generation_of_a_host_goes_back_to_nothing(daemon):
    host = daemon.host
    before = host.routes(), host.algorithm()
    daemon.start()
    host.steer((CLAIM, {"initcwnd": 31}), default="reno" if before[1] != "reno" else "cubic")
    daemon.apply(confirm_within_ns=10**9)
    daemon.awaits(lambda: daemon.status()["reverted"] == 1)
    assert (host.routes(), host.algorithm()) == before


def test_rollback_goes_back_one_confirmed_generation_after_the_other(running, transfer):
    applied(running, SECOND, 32)
    applied(running, THIRD, 33)
    for generation, expected in ((SECOND, 32), (FIRST, 31)):
        assert running.ask("rollback").document["generation"] == generation
        assert window(running.host) == expected
    refused = running.ask("rollback")
    assert refused.exit_code == 1
    assert "no earlier generation" in refused.message
    assert window(running.host) == 31
    assert transfer.flows()


def test_rollback_takes_back_what_waits_and_a_flush(running):
    applied(running, SECOND, 32, 600)
    running.ask("rollback")
    assert window(running.host) == 31
    running.ask("flush")
    assert running.host.routes(CLAIM) == []
    running.ask("rollback")
    assert window(running.host) == 31


def test_the_commands_ask_the_daemon(running):
    host = running.host
    steer(host, SECOND, 32)
    document = json.loads(host.agent("apply", "--confirm-within", "10m", "--json").stdout)
    assert (document["generation"], document["pending"]["generation"]) == (SECOND, SECOND)
    assert f"not confirmed: {SECOND} goes back to {FIRST}" in host.agent("status").stdout
    assert host.agent("confirm").stdout == f"generation {SECOND} stays\n"
    assert f"{CLAIM} of generation {SECOND}, by routes" in host.agent("why", "198.18.7.9").stdout
    assert host.agent("rollback", "--dry-run").stdout == "would change: 1 replaced, 0 unchanged\n"
    assert window(host) == 32
    assert host.agent("rollback").stdout == "routes: 1 replaced, 0 unchanged\n"
    assert host.agent("confirm", check=False).returncode == 1
    assert host.agent("flush").stdout == "routes: 1 removed, 0 unchanged\n"
    assert json.loads(host.agent("status", "--json").stdout)["generation"] is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_generation_that_waits_does_not_outlive_its_daemon(running, transfer, number):
    applied(running, SECOND, 32, 600)
    running.end(number)
    assert window(running.host) == (32 if number == signal.SIGKILL else 31)
    assert transfer.flows()
    running.start()
    status = running.status()
    assert (status["generation"], status["pending"], window(running.host)) == (FIRST, None, 31)
    assert transfer.flows()


def test_without_a_daemon_nothing_is_put_on_probation(host):
    host.steer((CLAIM, {"initcwnd": 31}))
    refused = host.agent("apply", "--confirm-within", "10m", check=False)
    assert refused.returncode == 3
    assert "no daemon" in refused.stderr
    assert "systemctl start tidegate-agent" in refused.stderr
    assert host.routes(CLAIM) == []


def test_what_is_applied_while_no_daemon_runs_is_what_the_next_one_goes_on_with(running):
    running.end(signal.SIGTERM)
    steer(running.host, SECOND, 32)
    running.host.apply()
    running.start()
    assert (running.status()["generation"], window(running.host)) == (SECOND, 32)
    running.end(signal.SIGTERM)
    running.host.agent("flush")
    running.start()
    assert (running.status()["generation"], running.host.routes(CLAIM)) == (None, [])


@pytest.mark.parametrize("on_stop", ["keep", "remove"])
def test_what_a_daemon_leaves_when_it_is_stopped(daemon, transfer, on_stop):
    host = daemon.host
    before = host.routes(), host.algorithm()
    daemon.start("--on-stop", on_stop)
    host.steer((CLAIM, {"initcwnd": 31}), default="reno" if before[1] != "reno" else "cubic")
    daemon.apply()
    steered = host.routes(), host.algorithm()
    assert steered != before
    assert daemon.end(signal.SIGTERM) == 0
    assert (host.routes(), host.algorithm()) == (steered if on_stop == "keep" else before)
    assert not (host.directory / "state" / "agent.sock").exists()
    assert transfer.flows()
    daemon.start("--on-stop", on_stop)
    assert (host.routes(), host.algorithm()) == steered


def test_a_dry_run_says_what_a_run_then_does_and_changes_nothing(running):
    steer(running.host, SECOND, 32)
    foretold = running.apply(dry_run=True)
    assert window(running.host) == 31
    assert (foretold["generation"], foretold["replaced"]) == (SECOND, [CLAIM])
    assert running.apply() == foretold
    assert not running.apply()["changed"]


def test_the_kept_generations_are_bounded(running):
    for number in range(12):
        applied(running, f"{number:016x}", 40 + number)
    assert len(list((running.host.directory / "state" / "generations").iterdir())) == 10


def test_why_names_the_claim_and_what_each_socket_has(running, transfer):
    assert transfer.flows()
    document = running.ask("why", peer="198.18.7.1").document
    assert (document["prefix"], document["generation"]) == (CLAIM, FIRST)
    assert document["because"] == {
        "congestion_control": f"claimed for {CLAIM}",
        "initcwnd": f"claimed for {CLAIM}",
    }
    (connection,) = document["connections"]
    assert connection["local"] == "192.0.2.2:8080"
    (words,) = running.host.connections("192.0.2.2:8080").values()
    assert connection["congestion_control"] in words  # opened before there was a claim
    unknown = running.ask("why", peer="203.0.113.9").document
    assert (unknown["prefix"], unknown["connections"]) == (None, [])
    assert running.ask("why", peer="nonsense").exit_code == 2
