"""What an interval of the learner costs over the published script's way to the same windows.

`python collectors/bench/riptide_cost.py` prints it; `measure()` is for others to call. As root the sockets are opened
in a network namespace of the measuring process, else in place.
"""

import json
import os
import resource
import socket
import sys
from contextlib import ExitStack, contextmanager
from ipaddress import ip_network
from subprocess import PIPE, Popen

from child import figures_of
from collector_cost import cpu_us, enter_new_namespace, holder, pairs_per_process
from tidegate_edge.riptide import Observer, State, claims, learn
from tidegate_edge.riptide.published import learn_as_published, list_sockets
from tidegate_edge.steer.steering import Learn

PAIRS = 9_500  # two sockets each, to 127.0.0.1 or ::1
POP_PAIRS = 500  # of each, one socket is to a POP and the other to 127.0.0.1
POP_ADDRESSES = 250
ROUNDS = 15
SCRIPT_ROUNDS = 3

# Fifty POPs of four prefixes, as a policy names them, and the one that has the addresses here.
TOWARD = (
    ip_network("127.1.0.0/24"),
    *(ip_network(f"198.19.{n}.0/24") for n in range(99)),
    *(ip_network(f"2001:db8:{n:x}::/48") for n in range(100)),
)
SETTINGS = Learn(TOWARD, 10, 100, 500_000, 1_000_000, 600_000_000)


def measure() -> dict[str, dict[str, object]]:
    """CPU (user and system) of one interval, the least of some rounds.

    Returns:
        `riptide.cpu_over_ss_script`: one look at 20,000 sockets of which 500 are to POPs, learned from and made
        claims, over `ss -tian`, its text read by regular expressions, and the same moving average for every host.

    Raises:
        RuntimeError: the measurement failed; its error output has been passed on.
    """
    return figures_of(__file__)


def measure_here() -> dict[str, dict[str, object]]:
    """As `measure`, in this process: it stays in the namespace until it ends."""
    if os.geteuid() == 0:
        enter_new_namespace()
    with ExitStack() as holders:
        holders.enter_context(pops())
        left = PAIRS
        while left:
            pairs = min(left, PAIRS // 2, pairs_per_process())
            family = socket.AF_INET if left > PAIRS // 2 else socket.AF_INET6
            holders.enter_context(holder(family, pairs))
            left -= pairs
        return compare()


def compare() -> dict[str, dict[str, object]]:
    observer, learner, script = Observer(TOWARD), [State()], [State()]
    listed, seen = [""], [0]

    def ours() -> None:
        observation = observer.observe()
        learner[0] = learn(learner[0], observation, SETTINGS, 0)
        claims(learner[0], SETTINGS)
        seen[0] = len(observation.connections)

    def theirs() -> None:
        listed[0] = list_sockets()
        script[0] = learn_as_published(script[0], listed[0], SETTINGS, 0)

    ours()
    our_us = min(cpu_us(ours) for _ in range(ROUNDS))
    their_us = min(with_children_us(theirs) for _ in range(SCRIPT_ROUNDS))
    sockets = listed[0].count("\nESTAB")
    against = (
        f"`ss -tian` read by regular expressions, {their_us / 1000:.1f} ms of CPU for {sockets} sockets; "
        f"an interval takes {our_us / 1000:.2f} ms for the {seen[0]} to POPs"
    )
    value = round(our_us / their_us, 4)
    return {"riptide.cpu_over_ss_script": {"value": value, "unit": "ratio", "against": against}}


def with_children_us(work) -> float:
    own = 0.0

    def timed() -> None:
        nonlocal own
        own = cpu_us(work)

    return cpu_us(timed, resource.RUSAGE_CHILDREN) + own


@contextmanager
def pops():
    """A process that holds the connections to the POPs until the context ends."""
    with Popen([sys.executable, __file__, "--hold"], stdin=PIPE, stdout=PIPE) as process:
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError("could not connect to the POPs")
        yield
        process.stdin.close()


def hold() -> None:
    pairs_per_process()
    listener = socket.create_server(("0.0.0.0", 0))
    held = []
    for number in range(POP_PAIRS):
        pop = f"127.1.0.{1 + number % POP_ADDRESSES}"
        held.append(
            socket.create_connection((pop, listener.getsockname()[1]), source_address=("127.0.0.1", 0))
        )
        held.append(listener.accept()[0])
        # Past their first window, so that they count.
        for _ in range(3):
            held[-2].sendall(bytes(30_000))
            held[-1].recv(30_000, socket.MSG_WAITALL)
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    if "--hold" in sys.argv:
        hold()
    else:
        print(json.dumps(measure_here() if "--measure" in sys.argv else measure(), indent=2))
