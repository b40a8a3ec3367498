"""What the route backend costs over `ip -batch` for the same 10,000 prefixes.

`python collectors/bench/routes_cost.py` prints it; `measure()` is for others to call. It needs root: the routes stand
in a network namespace of the measuring process.
"""

import ctypes
import gc
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network

from child import figures_of
from tidegate_edge.steer.claims import Settings
from tidegate_edge.steer.prefix import Prefix
from tidegate_edge.steer.route_backend import RouteBackend
from tidegate_edge.steer.routes import OWN_PRIORITY

ROUTES = 10_000
ROUNDS = 15
CLONE_NEWNET = 0x40000000


@dataclass(frozen=True)
class Cost:
    """Seconds."""

    wall: float
    cpu: float


def measure() -> dict[str, dict[str, object]]:
    """Wall-clock time of an apply, each the least of interleaved rounds.

    Returns:
        `steer.routes_10k_over_ip_batch`: from settings by prefix to 10,000 new routes in the kernel, with reading the
        table and planning, over `ip -batch` which is told the finished routes. Nothing where one is not root.

    Raises:
        RuntimeError: the measurement failed; its error output has been passed on.
    """
    if os.geteuid() != 0:
        print("steer.routes_*: needs root", file=sys.stderr)
        return {}
    return figures_of(__file__)


def measure_here() -> dict[str, dict[str, object]]:
    """As `measure`, in this process: it stays in the namespace until it ends."""
    enter_new_namespace()
    settings = ten_thousand()
    batch = batch_of(settings)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(
            cost_of(
                lambda: subprocess.run(["ip", "-batch", "-"], input=batch, check=True),
                resource.RUSAGE_CHILDREN,
            )
        )
        RouteBackend().remove()
        gc.collect()  # what the round before left
        ours.append(cost_of(lambda: apply(settings), resource.RUSAGE_SELF))
        RouteBackend().remove()
    mine, peer = (Cost(min(e.wall for e in each), min(e.cpu for e in each)) for each in (ours, theirs))
    return {
        "steer.routes_10k_over_ip_batch": {
            "value": round(mine.wall / peer.wall, 3),
            "unit": "ratio",
            "against": f"`ip -batch` of the same {ROUTES} routes, {1e3 * peer.wall:.0f} ms of wall clock and "
            f"{1e3 * peer.cpu:.0f} ms of CPU; the backend, {1e3 * mine.wall:.0f} and {1e3 * mine.cpu:.0f}",
        }
    }


def apply(settings: dict[Prefix, Settings]) -> None:
    applied = RouteBackend().apply("0" * 16, settings)
    if applied.rejected or applied.not_applied or len(applied.settings) != ROUTES:
        raise RuntimeError(f"not all routes were made: {applied.rejected[:3]} {applied.not_applied[:3]}")


def ten_thousand() -> dict[Prefix, Settings]:
    """Half IPv4, half IPv6, of three settings, in the order in which `claims.want` has them."""
    several = [Settings("bbr"), Settings("bbr", 40), Settings("cubic", 20, 60)]
    prefixes = [ip_network((0xC6120000 + 16 * n, 28)) for n in range(ROUTES // 2)]
    prefixes += [ip_network(((0x20010DB8 << 96) + (n << 72), 56)) for n in range(ROUTES // 2)]
    return {prefix: several[n % len(several)] for n, prefix in enumerate(prefixes)}


def batch_of(settings: dict[Prefix, Settings]) -> bytes:
    lines = []
    for prefix, each in settings.items():
        words = (
            f"route add {prefix} via 2001:db8:ffff::1"
            if prefix.version == 6
            else f"route add {prefix} via 192.0.2.1"
        )
        words += f" dev up0 proto 201 metric {OWN_PRIORITY} congctl {each.congestion_control}"
        words += f" initcwnd {each.initcwnd}" if each.initcwnd else ""
        lines.append(words + (f" initrwnd {each.initrwnd}" if each.initrwnd else ""))
    return "\n".join(lines).encode() + b"\n"


def cost_of(work: Callable[[], object], whose: int) -> Cost:
    before, start = resource.getrusage(whose), time.perf_counter()
    work()
    wall, after = time.perf_counter() - start, resource.getrusage(whose)
    return Cost(wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def enter_new_namespace() -> None:
    """One with two default routes by a link that carries."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    for words in (
        "link add up0 type veth peer name up1",
        "address add 192.0.2.2/24 dev up0",
        "address add 2001:db8:ffff::2/64 dev up0 nodad",
        "link set up1 up",
        "link set up0 up",
        "route add default via 192.0.2.1",
        "-6 route add default via 2001:db8:ffff::1",
    ):
        subprocess.run(["ip", *words.split()], check=True)


if __name__ == "__main__":
    print(json.dumps(measure_here() if "--measure" in sys.argv else measure(), indent=2))
