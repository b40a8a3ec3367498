"""What steering by BPF costs: a swap of 10,000 prefixes, and each connection.

`python collectors/bench/steer_cost.py` prints it; `measure()` is for others to call. Needs root: it steers a cgroup
and a network namespace of its own.
"""

import ctypes
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path

from child import figures_of
from tidegate_edge.steer.bpf import BpfBackend, Unavailable
from tidegate_edge.steer.bpf.cgroup import root_of_cgroups
from tidegate_edge.steer.claims import Settings

PREFIXES = 10_000
SWAPS = 15
ROUNDS = 40
CONNECTIONS = 250  # a round
CLONE_NEWNET = 0x40000000
CLONE_NEWNS = 0x00020000
LISTED = ip_network("127.0.0.0/8")
SETTINGS = Settings("bbr", 32, None, 100_000)


def measure() -> dict[str, dict[str, object]]:
    """Times of the backend on this kernel.

    Returns:
        `steer.swap_10k_ms`: the median time of `apply` with 10,000 prefixes, half of them IPv6, from records to the
        swap. `steer.connect_cost_ns_hit` and `_miss`: CPU time that a program adds to one end of a connection's
        establishment whose peer has settings, or has none, in a policy of 10,000: the median over interleaved rounds.
        Where the host doesn't allow BPF they are left out, and standard error says why.

    Raises:
        RuntimeError: the measurement failed; its error output has been passed on.
    """
    return figures_of(__file__)


def measure_here() -> dict[str, dict[str, object]]:
    """As `measure`, in this process: it stays in the namespaces until it ends."""
    if os.geteuid() != 0:
        print("steer.*: needs root", file=sys.stderr)
        return {}
    with ground() as (cgroup, pins):
        backend = BpfBackend(cgroup, pins)
        try:
            backend.attach()
        except Unavailable as why:
            print(f"steer.*: {why.message}", file=sys.stderr)
            return {}
        others = policy()
        swaps = [milliseconds(lambda: backend.apply("0123456789abcdef", others)) for _ in range(SWAPS)]
        backend.remove()
        return swap_figure(swaps) | connect_figures(backend, others)


def connect_figures(backend: BpfBackend, others: dict) -> dict[str, dict[str, object]]:
    """Every round has all three states, so that what else the machine does falls on each."""
    states = {
        "none": backend.remove,
        "miss": lambda: steer(backend, others),
        "hit": lambda: steer(backend, others | {LISTED: SETTINGS}),
    }
    costs: dict[str, list[float]] = {name: [] for name in states}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connect(listener, CONNECTIONS)
        for _ in range(ROUNDS):
            for name, enter in states.items():
                enter()
                connect(listener, CONNECTIONS // 10)
                costs[name].append(cpu_ns(lambda: connect(listener, CONNECTIONS)) / CONNECTIONS)
    backend.remove()
    floor = statistics.median(costs["none"])
    return {
        f"steer.connect_cost_ns_{name}": {
            # Both ends are steered.
            "value": round(
                statistics.median(
                    with_ - none for with_, none in zip(costs[name], costs["none"], strict=True)
                )
                / 2
            ),
            "unit": "ns",
            "against": f"no program attached, {floor / 2:.0f} ns of CPU an end; median of {ROUNDS} rounds",
        }
        for name in ("hit", "miss")
    }


def swap_figure(swaps: list[float]) -> dict[str, dict[str, object]]:
    return {
        "steer.swap_10k_ms": {
            "value": round(statistics.median(swaps), 1),
            "unit": "ms",
            "against": f"nothing: {PREFIXES} prefixes, {SWAPS} swaps, the fastest {min(swaps):.1f} ms",
        }
    }


def policy() -> dict:
    half = PREFIXES // 2
    prefixes = [ip_network((0x0A000000 + 256 * number, 24)) for number in range(half)]
    prefixes += [ip_network(((0x20010DB8 << 96) + (number << 72), 56)) for number in range(half)]
    return dict.fromkeys(prefixes, SETTINGS)


def steer(backend: BpfBackend, settings: dict) -> None:
    backend.attach()
    backend.apply("0123456789abcdef", settings)


def connect(listener: socket.socket, times: int) -> None:
    """Open and close connections; a reset leaves none in TIME_WAIT."""
    address = listener.getsockname()
    for _ in range(times):
        near = socket.create_connection(address)
        far = listener.accept()[0]
        near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        near.close()
        far.close()


def milliseconds(work) -> float:
    before = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - before)


def cpu_ns(work) -> int:
    before = time.thread_time_ns()
    work()
    return time.thread_time_ns() - before


@contextmanager
def ground() -> Iterator[tuple[Path, Path]]:
    """A cgroup with this process in it, and a directory in a BPF file system that goes with this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET | CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    root = root_of_cgroups()
    cgroup = root / f"tidegate-bench-{os.getpid()}"
    before = root / own_cgroup().lstrip("/")
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["mount", "-t", "bpf", "bpf", directory], check=True)
        cgroup.mkdir()
        try:
            (cgroup / "cgroup.procs").write_text(str(os.getpid()))
            yield cgroup, Path(directory) / "tidegate"
        finally:
            (before / "cgroup.procs").write_text(str(os.getpid()))
            cgroup.rmdir()
            subprocess.run(["umount", directory], check=True)


def own_cgroup() -> str:
    """This process's cgroup of version 2 (cgroups(7): the line of hierarchy 0)."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    return next(line.removeprefix("0::") for line in lines if line.startswith("0::"))


if __name__ == "__main__":
    print(json.dumps(measure_here() if "--measure" in sys.argv else measure(), indent=2))
