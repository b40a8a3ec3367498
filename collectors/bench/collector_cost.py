"""What a poll costs over the kernel's own price for the same sockets.

`python collectors/bench/collector_cost.py` prints it; `measure()` is for others to call. As root the sockets are
opened in a network namespace of the measuring process, else in place.
"""

import ctypes
import json
import os
import resource
import socket
import struct
import subprocess
import sys
from collections.abc import Container, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import ip_network
from pathlib import Path

from child import figures_of
from tidegate_edge.libbpf.library import Unavailable
from tidegate_edge.sockets import kernel, netlink
from tidegate_edge.sockets.arena import Arena
from tidegate_edge.sockets.iterator import BpfReader
from tidegate_edge.sockets.part import Part
from tidegate_edge.sockets.reader import NetlinkReader
from tidegate_edge.sockets.rows import Origin
from tidegate_edge.sockets.traffic import INTRA_POP, NEAR, ORIGIN, POP_TO_POP, Classifier

PAIRS = 10_000
ROUNDS = 15
SS_ROUNDS = 3
ALGORITHMS = (b"bbr", b"cubic")
CLONE_NEWNET = 0x40000000
FLOOR_ATTRIBUTES = kernel.WANTED_ATTRIBUTES | 1 << kernel.INET_DIAG_SKMEMINFO - 1


def measure() -> dict[str, dict[str, object]]:
    """CPU (user and system) of a poll by each reader, each the least of interleaved rounds, and its memory.

    Returns:
        `collector.netlink_over_floor` and `collector.bpf_over_floor`: the floor is one dump of each family with
        INFO, BBR, CONG and SKMEM, as `ss` asks for them, received by `recv_into` and thrown away.
        `collector.netlink_over_own_request`: the floor is the collector's own request, thrown away.
        `collector.bpf_over_ss`: over `ss -tia` into /dev/null. `collector.rss_mb`: the most that a collector held
        with either reader. What needs BPF is left out where the host does not allow it, and says why.

    Raises:
        RuntimeError: the measurement failed; its error output has been passed on.
    """
    return figures_of(__file__)


def measure_here() -> dict[str, dict[str, object]]:
    """As `measure`, in this process: it stays in the namespace until it ends."""
    if os.geteuid() == 0:
        enter_new_namespace()
    with ExitStack() as holders:
        left = PAIRS
        while left:
            pairs = min(left, PAIRS // 2, pairs_per_process())
            family = socket.AF_INET if left > PAIRS // 2 else socket.AF_INET6
            holders.enter_context(holder(family, pairs))
            left -= pairs
        return compare()


def compare() -> dict[str, dict[str, object]]:
    arena = Arena()
    origin = Origin("ams1", "bench", classifier=fleet_of_fifty())
    netlink_reader = NetlinkReader()
    floor_requests = netlink.walk_by_family(netlink.CONNECTED, FLOOR_ATTRIBUTES)
    own_requests = netlink.one_walk(netlink.CONNECTED, kernel.WANTED_ATTRIBUTES)
    works = {
        "floor": lambda: throw_away(floor_requests, arena.buffer),
        "own": lambda: throw_away(own_requests, arena.buffer),
        "netlink": lambda: rows_of(netlink_reader.poll(origin, arena)),
    }
    try:
        bpf_reader = BpfReader()
    except Unavailable as why:
        print(f"collector.bpf_*: {why.message}", file=sys.stderr)
    else:
        works["bpf"] = lambda: rows_of(bpf_reader.poll(origin, arena))
    costs: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            costs[name].append(cpu_us(work))
    sockets = rows_of(netlink_reader.poll(origin, arena))
    cost = {name: min(each) / sockets for name, each in costs.items()}
    cost["ss"] = min(ss_us() for _ in range(SS_ROUNDS)) / sockets
    return figures(cost, sockets) | {"collector.rss_mb": memory(works)}


def rows_of(poll: Iterable[Part]) -> int:
    """How many finished rows there are in all parts of a poll."""
    return sum(len(part.rows) for part in poll)


def figures(cost: dict[str, float], sockets: int) -> dict[str, dict[str, object]]:
    dumps = (
        f"bare dumps of both families with INFO, BBR, CONG and SKMEM, {cost['floor']:.2f} us of CPU a socket"
    )
    own = f"a bare dump with the collector's own request, {cost['own']:.2f} us of CPU a socket"
    ss = f"`ss -tia` into /dev/null, {cost['ss']:.2f} us of CPU a socket"
    ratios = (
        ("netlink_over_floor", "netlink", "floor", dumps),
        ("netlink_over_own_request", "netlink", "own", own),
        ("bpf_over_floor", "bpf", "floor", dumps),
        ("bpf_over_ss", "bpf", "ss", ss),
    )
    return {
        f"collector.{name}": {
            "value": round(cost[ours] / cost[theirs], 3),
            "unit": "ratio",
            "against": f"{against}, {sockets} sockets; a poll takes {cost[ours]:.2f} us",
        }
        for name, ours, theirs, against in ratios
        if ours in cost
    }


def memory(readers: Container[str]) -> dict[str, object]:
    held = {name: collector_mb(name) for name in ("netlink", "bpf") if name in readers}
    each = ", ".join(f"{name} {value} MB" for name, value in held.items())
    return {"value": max(held.values()), "unit": "MB", "against": f"nothing: {each}, three polls"}


def collector_mb(reader: str) -> float:
    """The most memory that a collector had resident."""
    command = [Path(sys.executable).with_name("tidegate-collector"), "run", "--reader", reader]
    command += ["--count", "3", "--interval", "100ms", "--pop", "ams1", "--host", "bench"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{command}: {status}")
    return round(used.ru_maxrss / 1024, 1)


def ss_us() -> float:
    return cpu_us(
        lambda: subprocess.run(["ss", "-tia"], stdout=subprocess.DEVNULL, check=True),
        resource.RUSAGE_CHILDREN,
    )


def throw_away(requests: list[tuple[int, bytes]], buffer: bytearray) -> None:
    """Receive the answers and look only for their end."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 4) as diag:
        for kind, payload in requests:
            diag.send(struct.pack("<IHHII", 16 + len(payload), kind, 0x301, 1, 0) + payload)
            done = False
            while not done:
                end = diag.recv_into(buffer)
                done = struct.unpack_from("<IH", buffer, end - 20) == (20, kernel.NLMSG_DONE)


def cpu_us(work, whose=resource.RUSAGE_SELF) -> float:
    before = resource.getrusage(whose)
    work()
    after = resource.getrusage(whose)
    return 1e6 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def fleet_of_fifty() -> Classifier:
    """Fifty POPs with four prefixes each, and twenty origins."""
    prefixes = [(ip_network(f"198.18.{n}.0/24"), ORIGIN) for n in range(20)]
    for pop in range(50):
        kind = POP_TO_POP if pop else INTRA_POP
        for n in range(2):
            prefixes.append((ip_network(f"198.19.{2 * pop + n}.0/24"), kind))
            prefixes.append((ip_network(f"2001:db8:{pop:x}:{n:x}00::/56"), kind))
    return Classifier([*prefixes, *((network, INTRA_POP) for network in NEAR)])


@contextmanager
def holder(family: socket.AddressFamily, pairs: int) -> Iterator[None]:
    """A process that holds connected loopback pairs until the context ends."""
    command = [sys.executable, __file__, "--hold", str(int(family)), str(pairs)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"could not open {pairs} pairs")
        yield
        process.stdin.close()


def hold(family: socket.AddressFamily, pairs: int) -> None:
    pairs_per_process()
    listener = socket.create_server(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family)
    held = []
    for number in range(pairs):
        # What is accepted takes after its listener.
        algorithm = ALGORITHMS[number % len(ALGORITHMS)]
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm)
        held.append(socket.create_connection(listener.getsockname()[:2]))
        held[-1].setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm)
        held.append(listener.accept()[0])
    print("ready", flush=True)
    sys.stdin.read()


def pairs_per_process() -> int:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return (hard - 100) // 2


def enter_new_namespace() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


if __name__ == "__main__":
    if "--hold" in sys.argv:
        hold(socket.AddressFamily(int(sys.argv[2])), int(sys.argv[3]))
    else:
        print(json.dumps(measure_here() if "--measure" in sys.argv else measure(), indent=2))
