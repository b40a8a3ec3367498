"""What a plan costs on a host that holds the routes of a routing daemon.

`python collectors/bench/full_table.py` prints it; `measure()` is for others to call. It needs root: the routes stand
in a network namespace of the measuring process.
"""

import json
import os
import resource
import subprocess
import sys
from ipaddress import ip_network
from pathlib import Path

from child import figures_of
from routes_cost import cost_of, enter_new_namespace, ten_thousand
from tidegate_edge.steer.route_backend import RouteBackend

ROUTES4, ROUTES6 = 150_000, 50_000
CLAIMS = 1000
ROUNDS = 5
STATUS = Path("/proc/self/status")


def measure() -> dict[str, dict[str, object]]:
    """An apply of 1,000 claims that stand already, the least of five rounds, beside 200,000 routes of others.

    Returns:
        `steer.full_table_over_ip_show`: CPU over that of `ip -N route show` of the same table, both families.
        `steer.full_table_mb`: by how much the process's peak of memory grows. Nothing where one is not root.

    Raises:
        RuntimeError: the measurement failed; its error output has been passed on.
    """
    if os.geteuid() != 0:
        print("steer.full_table_*: needs root", file=sys.stderr)
        return {}
    return figures_of(__file__)


def measure_here() -> dict[str, dict[str, object]]:
    """As `measure`, in this process: it stays in the namespace until it ends."""
    enter_new_namespace()
    fill()
    every = ten_thousand()
    settings = {prefix: every[prefix] for prefix in list(every)[:: len(every) // CLAIMS]}
    backend, before = RouteBackend(), fresh_peak_mb()
    backend.apply("0" * 16, settings)
    ours = min(
        cost_of(lambda: backend.apply("0" * 16, settings), resource.RUSAGE_SELF).cpu for _ in range(ROUNDS)
    )
    grown = peak_mb() - before
    theirs = min(cost_of(show, resource.RUSAGE_CHILDREN).cpu for _ in range(ROUNDS))
    return {
        "steer.full_table_over_ip_show": {
            "value": round(ours / theirs, 2),
            "unit": "ratio",
            "against": f"`ip route show` and `ip -6 route show` of the same {ROUTES4 + ROUTES6} routes, "
            f"{1e3 * theirs:.0f} ms of CPU; the backend, {1e3 * ours:.0f}",
        },
        "steer.full_table_mb": {
            "value": round(grown, 1),
            "unit": "MB",
            "against": f"the same process before, {before:.0f} MB",
        },
    }


def fill() -> None:
    """Beside and inside the claims; as many gateways as an exchange point has peers."""
    lines4 = (
        f"route add {ip_network((0x0B000000 + 256 * n, 24))} via 192.0.2.{3 + n % 50} metric 32"
        for n in range(ROUTES4)
    )
    lines6 = (
        f"route add {ip_network(((0x20010DB8 << 96) + (n << 68), 60))} via 2001:db8:ffff::{3 + n % 50:x} metric 32"
        for n in range(ROUTES6)
    )
    for family, lines in (("-4", lines4), ("-6", lines6)):
        text = "\n".join(lines).encode()
        subprocess.run(["ip", family, "-batch", "-"], input=text, check=True)


def show() -> None:
    for family in ("-4", "-6"):
        subprocess.run(["ip", "-N", family, "route", "show"], stdout=subprocess.DEVNULL, check=True)


def fresh_peak_mb() -> float:
    """Forget the peak so far: 5 resets VmHWM, proc(5)."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_mb()


def peak_mb() -> float:
    (line,) = [each for each in STATUS.read_text().splitlines() if each.startswith("VmHWM:")]
    return int(line.split()[1]) / 1000


if __name__ == "__main__":
    print(json.dumps(measure_here() if "--measure" in sys.argv else measure(), indent=2))
