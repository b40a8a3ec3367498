"""The watch on a real kernel: what counts as a change, and that our own changes do not."""

import os
import select
import socket
import sys
from contextlib import closing
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path

import pytest
from tidegate_edge.sockets.netns import inside
from tidegate_edge.steer.claims import Settings
from tidegate_edge.steer.kernel import read_own_routes
from tidegate_edge.steer.route_backend import RouteBackend
from tidegate_edge.steer.watch import Watch

pytestmark = pytest.mark.root
CLIENTS4, CLIENTS6 = ip_network("198.51.100.0/24"), ip_network("2001:db8:5::/48")
WANTED = {CLIENTS4: Settings("bbr", 40), CLIENTS6: Settings("bbr")}


@dataclass(frozen=True)
class Steered:
    """A host with claims, in whose namespace the test runs, and who listens there."""

    host: object
    backend: RouteBackend
    watch: Watch

    def hears(self, action):
        """Whether each try is heard; a late event of the host's links is as well, but not twenty times."""
        for _ in range(20):
            self.watch.changed()
            action()
            if not self.watch.changed():
                return False
        return True


@pytest.fixture
def steered(host):
    host.ip("nexthop add id 10 via 192.0.2.1 dev up0")
    host.ip("rule add from 192.0.2.9 table main priority 9")
    with inside(host.name), closing(Watch()) as watch:
        backend = RouteBackend()
        backend.apply("0" * 16, WANTED)
        yield Steered(host, backend, watch)


COUNTS = {
    "the default route moved": "route replace default via 192.0.2.65",
    "an IPv6 default of a router advertisement": "-6 route add default via fe80::1 dev up0 proto ra metric 512",
    "a route withdrawn": "-6 route del default",
    "our route deleted by another": "route del 198.51.100.0/24 proto 201",
    "our IPv6 route deleted by another": "-6 route del 2001:db8:5::/48 proto 201",
    "our route changed by another": (
        "route change 198.51.100.0/24 via 192.0.2.1 metric 201000000 proto 201 congctl reno"
    ),
    "a link down": "link set up1 down",
    "a nexthop object made": "nexthop add id 11 via 192.0.2.65 dev up1",
    "a nexthop object gone": "nexthop del id 10",
    "a rule made": "rule add from 192.0.2.10 table 77",
    "a rule gone": "rule del priority 9",
}


@pytest.mark.parametrize("words", COUNTS.values(), ids=COUNTS)
def test_what_others_change_counts(steered, words):
    steered.watch.changed()
    steered.host.ip(words)
    # The kernel tells before `ip` ends: nothing has to be awaited.
    assert select.select([steered.watch.fileno()], [], [], 0)[0]
    assert steered.watch.changed()


def test_many_changes_are_told_as_one(steered):
    def change_ten_times():
        for metric in range(1, 11):
            steered.host.ip(f"route replace 203.0.113.0/24 via 192.0.2.1 metric {metric}")
        assert steered.watch.changed()

    assert not steered.hears(change_ten_times)


# What no claim depends on.
DOES_NOT_COUNT = {
    "a route of another table": ("route replace 203.0.113.0/24 via 192.0.2.1 table 77",),
    "an address that only the table local knows": (
        "address add 192.0.2.77/32 dev lo",
        "address del 192.0.2.77/32 dev lo",
    ),
}


@pytest.mark.parametrize("commands", DOES_NOT_COUNT.values(), ids=DOES_NOT_COUNT)
def test_what_no_claim_depends_on_does_not_count(steered, commands):
    assert not steered.hears(lambda: [steered.host.ip(words) for words in commands])


def test_our_own_changes_do_not_count_however_many(steered):
    buffer_bytes = int(Path("/proc/sys/net/core/rmem_default").read_text())
    more = {ip_network((0xC6120000 + 8 * n, 32)): Settings("bbr") for n in range(buffer_bytes // 100)}
    more |= {ip_network(((0x20010DB8 << 96) + (n << 72), 56)): Settings("bbr") for n in range(200)}

    def apply_and_remove():
        assert not steered.backend.apply("1" * 16, more).rejected
        steered.backend.remove()

    assert not steered.hears(apply_and_remove)


def test_the_changes_of_another_process_of_ours_count(steered):
    """A one-shot run beside the daemon is a stranger to it."""
    steered.watch.changed()
    code = "from tidegate_edge.steer.route_backend import RouteBackend; RouteBackend().remove()"
    steered.host.inside(sys.executable, "-c", code)
    assert steered.watch.changed()
    assert steered.backend.read().settings == {}


def test_more_than_the_kernel_keeps_for_us_counts_as_a_change(steered):
    with socket.socket(fileno=os.dup(steered.watch.fileno())) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    batch = "".join(f"route add 203.0.113.{n}/32 via 192.0.2.1\n" for n in range(200))
    steered.host.inside("ip", "-batch", "-", input=batch)
    assert steered.watch.changed()
    steered.host.ip("route del 203.0.113.7/32")
    assert steered.watch.changed()


@pytest.mark.parametrize("family", [4, 6])
def test_a_default_route_that_moves_is_heard_and_followed(steered, family):
    prefix, gateway = {4: ("198.51.100.0/24", "192.0.2.65"), 6: ("2001:db8:5::/48", "2001:db8:1::1")}[family]
    steered.watch.changed()
    steered.host.ip(f"-{family} route replace default via {gateway}")
    assert steered.watch.changed()
    assert not steered.backend.apply("0" * 16, WANTED).rejected
    assert steered.host.own(prefix, family)["gateway"] == gateway


def test_a_link_that_goes_takes_ipv4_routes_silently_and_both_come_back(steered):
    host, backend = steered.host, steered.backend
    steered.watch.changed()
    host.ip("link set up0 down")
    assert steered.watch.changed()
    assert backend.read().settings == {}
    applied = backend.apply("0" * 16, WANTED)
    assert {each.prefix for each in applied.not_applied} == {CLIENTS4, CLIENTS6}
    assert (applied.settings, applied.rejected) == ({}, ())
    steered.watch.changed()
    host.ip("link set up0 up")
    host.awaits(host.links_carry)
    # IPv6 addresses go with a link, and their routes.
    host.ip("address add 2001:db8::2/64 dev up0 nodad")
    host.ip("route add default via 192.0.2.1")
    host.ip("-6 route add default via 2001:db8::1 dev up0")
    assert steered.watch.changed()
    assert backend.apply("0" * 16, WANTED).settings == WANTED
    assert backend.read().settings == WANTED
    assert len(read_own_routes()) == 2
