"""What a daemon with 10,000 claims takes of memory.

`python collectors/bench/agent_memory.py` prints it; `measure()` is for others to call. Needs root: the daemon steers
a cgroup and a network namespace of its own.
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from child import figures_of
from tidegate_edge.agent.ask import ask
from tidegate_edge.steer.bpf.cgroup import root_of_cgroups

CLAIMS = 10_000
APPLIES = 3
SETTINGS = {"congestion_control": "bbr", "min_bytes": 100_000, "ungated_fallback": True, "initcwnd": 32}
PATIENCE_S = 60
CLONE_NEWNET = 0x40000000
CLONE_NEWNS = 0x00020000

Result = TypeVar("Result")


def measure() -> dict[str, dict[str, object]]:
    """The daemon's largest resident memory, by BPF where this host allows it, else by routes.

    Returns:
        `agent.rss_mb`: VmHWM (proc_pid_status(5)) with Python and all libraries, in 2^20 bytes, after three
        generations of 10,000 claims, half of them IPv6, a `status` and a `why`. Nothing where one is not root.

    Raises:
        RuntimeError: the measurement failed; its error output has been passed on.
    """
    if os.geteuid() != 0:
        print("agent.*: needs root", file=sys.stderr)
        return {}
    return figures_of(__file__)


def measure_here() -> dict[str, dict[str, object]]:
    """As `measure`, in this process: it stays in the namespaces until it ends."""
    enter_new_namespaces()
    with tempfile.TemporaryDirectory() as directory, running(Path(directory)) as (process, socket):
        steering = steering_file(Path(directory))
        applied_s = []
        for number in range(APPLIES):
            steering.write_text(json.dumps(generation(number)))
            took, _ = timed(lambda: asked(socket, "apply", file=steering))
            applied_s.append(took)
        status_s, status = timed(lambda: asked(socket, "status"))
        why_s, _ = timed(lambda: asked(socket, "why", peer="10.0.1.1"))
        if len(status["claims"]) != CLAIMS or not status["matches"]:
            raise RuntimeError(f"the daemon does not hold what it was told: {status['trouble']}")
        peak = peak_mb(process)
        asked(socket, "flush")
    return {
        "agent.rss_mb": {
            "value": round(peak, 1),
            "unit": "MB",
            "against": f"nothing: {CLAIMS} claims by {status['backend']}; `apply` takes {min(applied_s):.2f} s of "
            f"wall clock, `status` {status_s:.2f}, `why` {why_s:.2f}",
        }
    }


@contextmanager
def running(directory: Path) -> Iterator[tuple[int, Path]]:
    """A daemon: its process and its socket; where BPF cannot be had it steers by routes."""
    with ExitStack() as undo:
        cgroup, pins = undo.enter_context(own_cgroup()), directory / "bpf"
        pins.mkdir()
        mounted = subprocess.run(["mount", "-t", "bpf", "bpf", pins], check=False)
        if mounted.returncode == 0:
            undo.callback(subprocess.run, ["umount", pins], check=True)
        state = directory / "state"
        agent = Path(sys.executable).with_name("tidegate-agent")
        options = [
            "--steering",
            steering_file(directory),
            "--state-dir",
            state,
            "--cgroup",
            cgroup,
            "--pins",
            pins / "tidegate",
        ]
        process = undo.enter_context(subprocess.Popen([str(each) for each in (agent, "run", *options)]))
        undo.callback(process.terminate)
        socket, deadline = state / "agent.sock", time.monotonic() + PATIENCE_S
        while not ask(socket, "status"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the daemon does not answer")
            time.sleep(0.02)
        yield process.pid, socket


@contextmanager
def own_cgroup() -> Iterator[Path]:
    """An empty cgroup, so that no connection of this machine is steered."""
    made = root_of_cgroups() / f"tidegate-bench-{os.getpid()}"
    made.mkdir()
    try:
        yield made
    finally:
        made.rmdir()


def steering_file(directory: Path) -> Path:
    return directory / "steering.json"


def asked(socket: Path, command: str, *, file: Path | None = None, **arguments: object) -> dict:
    answer = ask(socket, command, arguments, file)
    if answer is None or answer.exit_code or answer.document is None:
        raise RuntimeError(f"{command}: {answer and answer.message}")
    return answer.document


def generation(number: int) -> dict[str, object]:
    """A steering file of which each claim differs from the generation before."""
    prefixes = [f"10.{n >> 8}.{n & 255}.0/24" for n in range(CLAIMS // 2)]
    prefixes += [f"2001:db8:{n:x}::/48" for n in range(CLAIMS // 2)]
    settings = SETTINGS | {"initcwnd": SETTINGS["initcwnd"] + number}
    return {
        "schema_version": 1,
        "generation": f"{number:016x}",
        "default_congestion_control": None,
        "claims": [{"prefix": prefix, **settings} for prefix in prefixes],
        "riptide": None,
    }


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds of wall clock, and the result."""
    before = time.perf_counter()
    result = work()
    return time.perf_counter() - before, result


def peak_mb(process: int) -> float:
    """VmHWM, which the kernel gives in units of 1,024 bytes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (kibibytes,) = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
    return kibibytes / 1024


def enter_new_namespaces() -> None:
    """Those of networks and mounts, with default routes by a link that carries."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET | CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    for words in (
        "mount --make-rprivate /",
        "ip link add up0 type veth peer name up1",
        "ip address add 192.0.2.2/24 dev up0",
        "ip address add 2001:db8:ffff::2/64 dev up0 nodad",
        "ip link set up1 up",
        "ip link set up0 up",
        "ip route add default via 192.0.2.1",
        "ip -6 route add default via 2001:db8:ffff::1",
    ):
        subprocess.run(words.split(), check=True)


if __name__ == "__main__":
    print(json.dumps(measure_here() if "--measure" in sys.argv else measure(), indent=2))
