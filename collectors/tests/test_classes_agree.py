"""Both readers give a socket the same traffic class: the program in the kernel, and the reader where that can't."""

import socket
import subprocess
import uuid
from contextlib import ExitStack
from ipaddress import ip_address, ip_network

import pytest
from tidegate_edge.sockets import netns as namespaces
from tidegate_edge.sockets.addresses import FULL
from tidegate_edge.sockets.arena import Arena
from tidegate_edge.sockets.iterator import CLASS_STEPS, BpfReader
from tidegate_edge.sockets.reader import NetlinkReader
from tidegate_edge.sockets.rows import Origin
from tidegate_edge.sockets.traffic import CLIENT, INTRA_POP, NEAR, ORIGIN, POP_TO_POP, Classifier

pytestmark = pytest.mark.root

OURS = ["198.18.0.0/15", "2001:db8::/32"]
FLEET = {
    "198.18.0.0/16": POP_TO_POP,
    "198.18.7.0/24": ORIGIN,
    "198.18.7.128/25": INTRA_POP,
    "198.19.255.255/32": ORIGIN,
    "2001:db8:1::/48": POP_TO_POP,
    "2001:db8:1:8000::/49": INTRA_POP,
    "2001:db8:2:3::/64": ORIGIN,
}
MANY = {f"198.19.{n >> 6}.{n << 2 & 255}/31": POP_TO_POP for n in range(CLASS_STEPS)}


def edges(text):
    """The first and the last address of a prefix, and its neighbours."""
    network = ip_network(text)
    near = [network[0] - 1, network[0], network[-1], network[-1] + 1]
    return [address for address in near if any(address in ip_network(space) for space in OURS)]


@pytest.fixture
def netns():
    name = f"tidegate-{uuid.uuid4().hex[:8]}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
    for space in OURS:
        subprocess.run(["ip", "-n", name, "route", "add", "local", space, "dev", "lo"], check=True)
    yield name
    subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.fixture
def connections(netns):
    """One to each edge of each prefix, and some that stay near."""
    names = {address for text in [*FLEET, "2001:db8:2:3::/65"] for address in edges(text)}
    names |= {ip_address(name) for name in ("127.0.0.1", "127.0.0.2", "::1", "198.19.0.4", "198.19.0.6")}
    with ExitStack() as held:
        with namespaces.inside(netns):
            listener = held.enter_context(
                socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
            )
            for name in sorted(map(str, names)):
                remote, local = (name, listener.getsockname()[1]), ("::1" if ":" in name else "127.0.0.1", 0)
                held.enter_context(socket.create_connection(remote, source_address=local))
                held.enter_context(listener.accept()[0])
        yield len(names)


@pytest.mark.parametrize(
    ("fleet", "kinds"),
    [
        (FLEET, {CLIENT, INTRA_POP, POP_TO_POP, ORIGIN}),
        (FLEET | {"2001:db8:2:3::/65": POP_TO_POP}, {CLIENT, INTRA_POP, POP_TO_POP, ORIGIN}),
        (MANY, {CLIENT, INTRA_POP, POP_TO_POP}),
        ({}, {CLIENT, INTRA_POP}),
    ],
    ids=["by the program", "within a key", "beyond the program", "no fleet"],
)
def test_both_readers_classify_alike(netns, connections, fleet, kinds):
    prefixes = [(ip_network(text), kind) for text, kind in fleet.items()]
    classifier = Classifier([*prefixes, *((network, INTRA_POP) for network in NEAR)])
    origin = Origin("ams1", "edge1", FULL, classifier=classifier)
    found = {}
    for reader in (BpfReader(netns), NetlinkReader(netns)):
        found[reader.name] = {
            int(row["cookie"]): (bytes(row["remote_address"]), int(row["traffic_class"]))
            for part in reader.poll(origin, Arena())
            for row in part.rows
        }
        reader.close()
    assert len(found["netlink"]) == 2 * connections
    assert found["bpf"] == found["netlink"]
    assert {kind for _, kind in found["bpf"].values()} == kinds


def test_a_reader_forgets_the_fleet_of_the_poll_before(netns, connections):
    reader = BpfReader(netns)
    known = Origin("ams1", "edge1", FULL, classifier=Classifier([(ip_network("::/0"), ORIGIN)]))
    for origin, kinds in ((known, {ORIGIN, INTRA_POP}), (Origin("ams1", "edge1", FULL), {0})):
        rows = [int(row["traffic_class"]) for part in reader.poll(origin, Arena()) for row in part.rows]
        assert len(rows) == 2 * connections
        assert set(rows) == kinds
    reader.close()
