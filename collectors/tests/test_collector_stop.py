"""How `tidegate-collector run` pauses, and how a signal ends it."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tidegate_edge.option_types import duration_ns

COLLECTOR = Path(sys.executable).with_name("tidegate-collector")

# First pauses under a stream of signals: each is to end, at whatever step of it the signal comes.
# It leaves by _exit: in its last moments Python gives signals their default action back.
PAUSES = """
import os
from tidegate_edge.stop import stopped_by_signals
print(stopped_by_signals()(0.0), flush=True)
print(all(stopped_by_signals()(3600) for _ in range(400)), flush=True)
os._exit(0)
"""


# Raises the signal at one step of a pause after the other, the steps of its Python calls included.
STEPS = """
import itertools, os, signal, sys
from tidegate_edge.stop import stopped_by_signals

def pause_with_signal_at(chosen):
    steps = itertools.count()
    def trace(frame, event, argument):
        frame.f_trace_opcodes = True
        if next(steps) == chosen:
            signal.raise_signal(signal.SIGTERM)
        return trace
    stopped = stopped_by_signals()
    sys.settrace(trace)
    stopped(0.0)
    sys.settrace(None)
    return next(steps), stopped

count, _ = pause_with_signal_at(None)
print(count > 20 and all(pause_with_signal_at(step)[1](3600) for step in range(count)), flush=True)
os._exit(0)
"""


def test_a_signal_at_any_step_of_a_pause_ends_the_next():
    done = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, check=False, timeout=30)
    assert (done.stdout, done.stderr) == (b"True\n", b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_no_signal_finds_a_pause_that_it_cannot_end(number):
    with subprocess.Popen([sys.executable, "-c", PAUSES], stdout=subprocess.PIPE, text=True) as pausing:
        assert pausing.stdout.readline() == "False\n"
        while pausing.poll() is None:
            pausing.send_signal(number)
        assert pausing.stdout.read() == "True\n"
    assert pausing.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_longest_pause(number):
    command = [COLLECTOR, "run", "--json", "--all-states", "--interval", "1440m"]
    with (
        socket.create_server(("127.0.0.1", 0)),  # a row at least
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as running,
    ):
        first = running.stdout.read(1)
        running.send_signal(number)
        errors = running.communicate(timeout=30)[1]
    assert (first, running.returncode) == (b"{", 0)
    assert json.loads(errors)["polls"] == 1


def test_an_interval_is_a_day_at_most():
    assert duration_ns(None, None, "1440m") == 86_400 * 10**9
    for longer in ("1441m", "86401s", "86400001ms", "999999999m"):
        with pytest.raises(click.BadParameter, match="is longer than a day: write `1440m` or less"):
            duration_ns(None, None, longer)


def test_too_long_an_interval_is_wrong_usage():
    command = [COLLECTOR, "run", "--json", "--interval", "999999999m"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")
    assert "`999999999m` is longer than a day" in done.stderr.decode()


@pytest.mark.root
def test_a_signal_to_the_child_that_enters_a_namespace_ends_nothing():
    name = f"tidegate-stop-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        command = [COLLECTOR, "run", "--json", "--netns", name, "--interval", "50ms", "--count", "3"]
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)
    assert done.returncode == 0
    assert json.loads(done.stderr)["polls"] == 3
