"""The route backend on a real kernel: what it makes, what it reads back, and what it says it could not do."""

import subprocess
import sys
from ipaddress import ip_network

import pytest
from tidegate_edge.errors import Failure
from tidegate_edge.sockets.netns import inside
from tidegate_edge.steer.claims import Settings
from tidegate_edge.steer.kernel import read_own_routes
from tidegate_edge.steer.route_backend import RouteBackend

pytestmark = pytest.mark.root
CLIENTS4, CLIENTS6 = ip_network("198.51.100.0/24"), ip_network("2001:db8:5::/48")
BBR = Settings("bbr", 40)
MANY = 10_000


@pytest.fixture
def backend(host):
    with inside(host.name):
        made = RouteBackend()
        made.attach()
        yield made


def many(settings):
    """/32 of 198.18.0.0/15, apart from each other, and /64 of a /48."""
    half = MANY // 2
    return {ip_network((0xC6120000 + 8 * n, 32)): settings for n in range(half)} | {
        ip_network(((0x20010DB8000A << 80) + (n << 64), 64)): settings for n in range(half)
    }


def test_settings_stand_in_the_kernel_and_read_back(host, backend):
    wanted = {CLIENTS4: BBR, CLIENTS6: Settings(None, 30, 60)}
    applied = backend.apply("0123456789abcdef", wanted)
    assert (applied.generation, applied.settings) == ("0123456789abcdef", wanted)
    assert (applied.not_applied, applied.rejected, applied.notices) == ((), (), ())
    assert host.settings("198.51.100.0/24") == {"congestion": "bbr", "initcwnd": 40}
    assert host.settings("2001:db8:5::/48", 6) == {"initcwnd": 30, "initrwnd": 60}
    held = backend.read()
    assert (held.attached, held.variant, held.generation, held.counters) == (True, "routes", None, {})
    assert held.settings == wanted
    assert RouteBackend().read().settings == wanted  # also one that planned nothing reads what there is


def test_what_stands_by_halves_reads_back_as_the_prefix(host, backend):
    host.ip("route add 198.51.100.0/24 via 192.0.2.1")
    backend.apply("0" * 16, {CLIENTS4: BBR})
    assert {str(each.prefix) for each in read_own_routes()} == {"198.51.100.0/25", "198.51.100.128/25"}
    assert backend.read().settings == {CLIENTS4: BBR}
    host.ip("route del 198.51.100.128/25 proto 201")
    assert backend.read().settings == {}


def test_a_window_that_came_with_the_hosts_route_counts_as_not_set(host, backend):
    host.ip("route add 198.51.0.0/16 via 192.0.2.65 initcwnd 12")
    backend.apply("0" * 16, {CLIENTS4: Settings("bbr")})
    assert host.settings("198.51.100.0/24") == {"congestion": "bbr", "initcwnd": 12}
    assert backend.read().settings == {CLIENTS4: Settings("bbr")}


# What a stranger does to our route, and what is then read of its prefix.
STRANGERS = {
    "deletes it": ("route del 198.51.100.0/24 proto 201", None),
    "sets another algorithm": (
        "route change 198.51.100.0/24 via 192.0.2.1 metric 201000000 proto 201 congctl reno initcwnd 40",
        Settings("reno", 40),
    ),
    "adds a window": (
        "route change 198.51.100.0/24 via 192.0.2.1 metric 201000000 proto 201 congctl bbr initcwnd 40 initrwnd 9",
        Settings("bbr", 40, 9),
    ),
    "sends it another way": (
        "route change 198.51.100.0/24 via 192.0.2.65 metric 201000000 proto 201 congctl bbr initcwnd 40",
        None,
    ),
    "takes its place": ("route replace 198.51.100.0/24 via 192.0.2.65 metric 201000000", None),
    "adds one of our name": ("route add 198.51.100.0/24 via 192.0.2.65 metric 9 proto 201", None),
}


@pytest.mark.parametrize(("words", "read"), STRANGERS.values(), ids=STRANGERS)
def test_what_a_stranger_does_is_seen_and_mended(host, backend, words, read):
    wanted = {CLIENTS4: BBR, CLIENTS6: BBR}
    backend.apply("0" * 16, wanted)
    before = read_own_routes()
    host.ip(words)
    assert backend.read().settings.get(CLIENTS4) == read
    assert backend.read().settings[CLIENTS6] == BBR
    applied = backend.apply("0" * 16, wanted)
    assert not applied.rejected
    assert backend.read().settings == applied.settings == wanted
    # A stranger's own route in our place is not ours to remove; ours then stands before it.
    assert {each.prefix for each in before} == {each.prefix for each in read_own_routes()}


def test_removal_leaves_what_the_host_had(host, backend):
    host.ip("route add 203.0.113.0/24 via 192.0.2.65 proto static")
    before = [host.routes(family=family) for family in (4, 6)]
    backend.apply("0" * 16, {CLIENTS4: BBR, CLIENTS6: BBR})
    backend.remove()
    assert [host.routes(family=family) for family in (4, 6)] == before
    assert backend.read().settings == {}
    backend.remove()


def test_a_prefix_that_the_kernel_refuses_keeps_what_it_had_and_the_others_get_theirs(backend):
    other = ip_network("203.0.113.0/24")
    backend.apply("0" * 16, {CLIENTS4: BBR, other: BBR})
    applied = backend.apply("1" * 16, {CLIENTS4: Settings("nosuch"), other: Settings("reno")})
    assert [each.route.prefix for each in applied.rejected] == [CLIENTS4]
    assert applied.rejected[0].reason
    assert backend.read().settings == applied.settings == {CLIENTS4: BBR, other: Settings("reno")}


def test_thousands_that_are_refused_keep_what_they_overlap_and_nothing_else(backend):
    """Also where as many others go at once: an uplink that is lost in the middle of an apply."""
    inner = {ip_network((int(each.network_address), 30)): BBR for each in list(many(BBR))[: MANY // 2 : 2]}
    outer = [ip_network((int(each.network_address), 28)) for each in inner]
    backend.apply("0" * 16, many(BBR) | inner)
    applied = backend.apply("1" * 16, dict.fromkeys(outer, Settings("nosuch")))
    assert {each.route.prefix for each in applied.rejected} == set(outer)
    assert backend.read().settings.keys() == {each for each in many(BBR) | inner if each.version == 4}


def test_a_prefix_without_a_way_is_said_and_not_expected(host, backend):
    host.ip("route del default")
    applied = backend.apply("0" * 16, {CLIENTS4: BBR, CLIENTS6: BBR})
    assert {(each.prefix, each.attribute) for each in applied.not_applied} == {
        (CLIENTS4, "congestion_control"),
        (CLIENTS4, "initcwnd"),
    }
    assert backend.read().settings == applied.settings == {CLIENTS6: BBR}


def test_ten_thousand_routes_are_made_replaced_and_removed_and_each_failure_is_named(backend):
    first, second = many(BBR), many(Settings("reno", 20))
    assert not backend.apply("0" * 16, first).rejected
    assert backend.read().settings == first
    bad = list(second)[:: MANY // 40]
    applied = backend.apply("1" * 16, second | dict.fromkeys(bad, Settings("nosuch", 20)))
    assert {each.route.prefix for each in applied.rejected} == set(bad)
    assert backend.read().settings == second | dict.fromkeys(bad, BBR)
    backend.remove()
    assert read_own_routes() == []


def test_our_own_routes_are_never_cloned(host, backend):
    """Once installed, an outer route of ours is what `ip route get` finds for the inner prefix."""
    outer = {ip_network("198.51.0.0/16"): Settings("reno", 20)}
    backend.apply("0" * 16, outer)
    backend.apply("1" * 16, outer | {CLIENTS4: Settings("bbr")})
    assert host.settings("198.51.100.0/24") == {"congestion": "bbr"}
    host.ip("route replace default via 192.0.2.65")
    backend.apply("1" * 16, outer | {CLIENTS4: Settings("bbr")})
    assert {host.own(each)["gateway"] for each in ("198.51.0.0/16", "198.51.100.0/24")} == {"192.0.2.65"}


def test_an_algorithm_that_waits_for_a_size_is_refused(backend):
    with pytest.raises(ValueError, match="gate"):
        backend.apply("0" * 16, {CLIENTS4: Settings("bbr", min_bytes=100_000)})
    assert read_own_routes() == []


def test_a_process_that_may_not_change_routes_is_told_so(host):
    code = "from tidegate_edge.steer.route_backend import RouteBackend as B; print(B().read().attached); B().attach()"
    argv = ["setpriv", "--bounding-set=-net_admin", sys.executable, "-c", code]
    done = subprocess.run(
        ["ip", "netns", "exec", host.name, *argv], text=True, capture_output=True, check=False
    )
    assert done.stdout == "False\n"
    assert f"{Failure.__name__}" in done.stderr
    assert "CAP_NET_ADMIN" in done.stderr
