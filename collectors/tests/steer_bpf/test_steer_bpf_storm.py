"""Policies swapped and programs upgraded while connections storm in: each gets all of one generation."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from ipaddress import ip_network

import pytest
from tidegate_edge.libbpf import descriptors, maps
from tidegate_edge.steer.bpf import layout
from tidegate_edge.steer.claims import Settings

pytestmark = pytest.mark.root
LOOPBACK = ip_network("127.0.0.0/8")
OTHERS = [ip_network((0x0A000000 + 256 * number, 24)) for number in range(5_000)]
OTHERS += [ip_network(((0x20010DB8 << 96) + (number << 72), 56)) for number in range(4_999)]
SWAPS, UPGRADES = (5, 20) if "EMULATED" in os.environ else (20, 200)

# Opens connections to itself until it is told to end; what each end starts with: (window, algorithm).
STORM = """
import collections, json, socket, struct, sys, threading
end = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), end.set()), daemon=True).start()
listener = socket.create_server(("127.0.0.1", 0))
seen = collections.Counter()
while not end.is_set():
    near = socket.create_connection(listener.getsockname())
    far = listener.accept()[0]
    for side in (near, far):
        window = struct.unpack_from("=I", side.getsockopt(6, socket.TCP_INFO, 104), 80)[0]
        name = side.getsockopt(6, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode()
        seen[f"{window} {name}"] += 1
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    near.close()
    far.close()
print(json.dumps(seen))
"""


def generation(number):
    """Two generations in turns that differ in both settings."""
    settings = Settings("reno", 21) if number % 2 else Settings("cubic", 32)
    return f"{number:016x}", {LOOPBACK: settings, **dict.fromkeys(OTHERS, settings)}


@contextmanager
def storm(ground):
    """Yields (await so many more connections, end the storm and get what its connections started with)."""
    with ground.running(
        sys.executable, "-c", STORM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def more(connections):
            aim = counted(ground.pins) + connections
            ground.awaits(lambda: counted(ground.pins) >= aim)

        def ended():
            return json.loads(process.communicate("", timeout=60)[0])

        more(10)
        yield more, ended


def counted(pins):
    """Connections of the loopback's prefix, read alone: `read` would read 10,000 prefixes with it."""
    with descriptors.closing(descriptors.get(pins / "counters")) as counters:
        found = maps.look_up(counters, layout.encode_prefix(LOOPBACK), layout.COUNTERS_SIZE)
    return layout.decode_counters(found).connections if found else 0


def test_every_connection_gets_the_old_or_the_new_generation_whole(ground):
    backend = ground.backend()
    backend.attach()
    backend.apply(*generation(0))
    with storm(ground) as (more, ended):
        for number in range(1, SWAPS):
            backend.apply(*generation(number))
            more(10)
        seen = ended()
    assert seen.keys() == {"21 reno", "32 cubic"}
    held = backend.read()
    assert held.generation == f"{SWAPS - 1:016x}"
    assert len(held.settings) == 10_000
    assert held.counters[LOOPBACK].connections == held.counters[LOOPBACK].switches == sum(seen.values())


def test_upgrades_leave_no_connection_untreated(ground):
    backend = ground.backend()
    backend.attach()
    backend.apply("0123456789abcdef", {LOOPBACK: Settings("reno", 21)})
    with storm(ground) as (more, ended):
        for _ in range(UPGRADES):
            ground.backend().attach()
            more(1)
        seen = ended()
    assert seen.keys() == {"21 reno"}
    held = backend.read()
    assert (held.attached, held.generation, held.missing) == (True, "0123456789abcdef", ())
    assert held.counters[LOOPBACK].connections == sum(seen.values()) > UPGRADES
