"""Routes to changes: which route the kernel would take after the plan, asked by brute force over `ipaddress`."""

import struct
from ipaddress import ip_network

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tidegate_edge.steer.claims import NOTHING_WANTED, Settings, Wanted
from tidegate_edge.steer.prefix import apart, order
from tidegate_edge.steer.route import ROUTE_PROTOCOL, UNICAST, Hop, Path, Route
from tidegate_edge.steer.routes import OWN_PRIORITY, plan_routes
from tidegate_edge.steer.table import Table

RTPROT_STATIC = 4
RTAX_MTU, RTAX_CC_ALGO = 2, 16
UNREACHABLE = 7
BBR = Settings("bbr")


def route(prefix, interface=1, priority=0, kind=UNICAST, protocol=RTPROT_STATIC, **more):
    hops = (Hop(interface, ()),) if kind == UNICAST else ()
    return Route(ip_network(prefix), priority, Path(protocol, kind, 0, **{"hops": hops, **more}))


def plan(routes, *prefixes, settings=BBR, tables=()):
    return plan_routes(routes, tables, Wanted({ip_network(each): settings for each in prefixes}, ()))


def takes(routes, address):
    """Brute force: the route the kernel would take, or None."""
    fitting = [each for each in routes if address in each.prefix and each.path.usable]
    return min(fitting, default=None, key=lambda e: (-e.prefix.prefixlen, e.priority, -e.path.preference))


def test_a_clone_goes_the_way_of_the_longest_route_and_keeps_its_metrics():
    mtu = (RTAX_MTU, struct.pack("=I", 1400))
    default, pop = route("0.0.0.0/0"), route("198.18.0.0/15", interface=2, metrics=(mtu,))
    (made,) = plan([default, pop], "198.18.7.0/24").after
    assert made.path.hops == pop.path.hops
    assert made.path.metrics == (mtu, (RTAX_CC_ALGO, b"bbr\0"))
    assert (made.path.protocol, made.priority) == (ROUTE_PROTOCOL, OWN_PRIORITY)


def test_of_equal_prefixes_the_lowest_metric_and_then_the_preferred_router_is_cloned():
    routes = [
        route("::/0", 1, 1024),
        route("::/0", 2, 1024, preference=1),
        route("::/0", 3, 2048, preference=1),
    ]
    (made,) = plan(routes, "2001:db8::/48").after
    assert made.path.hops[0].interface == 2
    assert made.path.preference == 0


@pytest.mark.parametrize("prefix", ["198.51.100.0/24", "2001:db8:5::/48"])
def test_before_the_hosts_own_route_to_the_prefix_stands_one_of_a_lower_metric(prefix):
    (made,) = plan([route(prefix, priority=32)], prefix).after
    assert (str(made.prefix), made.priority) == (prefix, 31)


def test_where_no_metric_is_lower_the_two_halves_stand_in():
    made = plan([route("198.51.100.0/24", priority=0)], "198.51.100.0/24").after
    assert [str(each.prefix) for each in made] == ["198.51.100.0/25", "198.51.100.128/25"]


def test_a_half_that_is_claimed_by_itself_is_left_to_its_own_claim():
    wanted = Wanted({ip_network("192.0.2.0/24"): BBR, ip_network("192.0.2.0/25"): Settings("reno")}, ())
    made = plan_routes([route("192.0.2.0/24")], (), wanted).after
    assert [(str(e.prefix), e.path.metrics[0][1]) for e in made] == [
        ("192.0.2.0/25", b"reno\0"),
        ("192.0.2.128/25", b"bbr\0"),
    ]


@pytest.mark.parametrize(
    ("routes", "reason"),
    [
        ([], "no route"),
        ([route("192.0.2.0/25")], "no route"),
        ([route("0.0.0.0/0"), route("192.0.2.0/24", kind=UNREACHABLE)], "unreachable"),
        ([route("0.0.0.0/0", hops=())], "no route"),
        ([route("0.0.0.0/0", narrow=True)], "no route"),
    ],
)
def test_a_prefix_without_a_usable_route_is_reported_and_gets_none(routes, reason):
    made = plan(routes, "192.0.2.0/24", settings=Settings("bbr", 20))
    assert not made.after
    assert [(e.attribute, reason in e.reason) for e in made.not_applied] == [
        ("congestion_control", True),
        ("initcwnd", True),
    ]


def test_a_host_route_that_nothing_can_come_before_is_reported():
    made = plan([route("192.0.2.7/32")], "192.0.2.7/32")
    assert not made.after
    assert "none comes before it" in made.not_applied[0].reason


def test_more_specific_routes_of_the_host_are_named_unless_claimed():
    routes = [route("0.0.0.0/0"), route("198.18.7.0/24"), route("198.18.9.0/24", priority=9)]
    (notice,) = plan(routes, "198.18.0.0/16", "198.18.9.0/24").notices
    assert str(notice.prefix) == "198.18.0.0/16"
    assert "198.18.7.0/24" in notice.reason
    assert "198.18.9.0/24" not in notice.reason


def test_policy_rules_to_other_tables_are_named():
    (notice,) = plan([route("0.0.0.0/0")], "192.0.2.0/24", tables=[100, 200]).notices
    assert "100, 200" in notice.reason


def test_new_routes_stand_before_those_that_go():
    old = route("192.0.2.0/24", priority=OWN_PRIORITY, protocol=ROUTE_PROTOCOL)
    changes = plan([route("0.0.0.0/0"), route("192.0.2.0/24", priority=9), old], "192.0.2.0/24").changes
    assert [(change, each.priority) for change, each in changes] == [("add", 8), ("remove", OWN_PRIORITY)]


nets4 = st.builds(
    lambda bits, length: ip_network((0xC6120000 | bits << 8, length), strict=False),
    st.integers(0, 255),
    st.integers(0, 27),
)
nets6 = st.builds(
    lambda bits, length: ip_network((0x20010DB8 << 96 | bits << 64, length), strict=False),
    st.integers(0, 255),
    st.integers(0, 67),
)
nets = nets4 | nets6
foreign = st.lists(
    st.builds(
        route,
        prefix=nets,
        interface=st.integers(1, 4),
        # 0 is not a metric of an IPv6 route: the kernel makes it 1024.
        priority=st.sampled_from([1, 2, 32, 1024]),
        kind=st.sampled_from([UNICAST, UNICAST, UNICAST, UNREACHABLE]),
        narrow=st.sampled_from([False, False, False, True]),
    ),
    max_size=12,
    unique_by=lambda e: (e.prefix, e.priority),
)
foreign4_of_metric_zero = st.lists(
    st.builds(route, prefix=nets4, interface=st.integers(1, 4)), max_size=6, unique_by=lambda e: e.prefix
)
claimed = st.lists(nets, unique=True, max_size=8)


@given(foreign, nets)
def test_the_table_finds_what_brute_force_finds(routes, prefix):
    best = Table(routes).best(order(prefix))
    covering = [e for e in routes if e.prefix.version == prefix.version and e.prefix.supernet_of(prefix)]
    assert best == takes(covering, prefix.network_address)


@given(foreign, claimed)
def test_a_route_of_the_host_that_no_claim_reaches_is_named_with_the_nearest_claim(routes, prefixes):
    used = {e.prefix for e in routes if e.path.usable}
    over = {each: [claim for claim in prefixes if covers(claim, each)] for each in used}
    nearest = {each: max(found, key=lambda e: e.prefixlen) for each, found in over.items() if found}
    shadowed = {claim for each, claim in nearest.items() if each != claim}
    assert [e.prefix for e in plan(routes, *prefixes).notices] == sorted(shadowed, key=order)


@given(foreign, foreign4_of_metric_zero, claimed)
def test_packets_go_the_same_way_and_carry_the_claim_unless_said_otherwise(some, zero, prefixes):
    """The invariant of the whole room: steering never changes where a packet goes."""
    routes = some + zero
    made = plan(routes, *prefixes)
    excused = [each.prefix for each in (*made.not_applied, *made.notices) if each.prefix]
    corners = [a for p in prefixes for a in (p.network_address, p[p.num_addresses // 2], p.broadcast_address)]
    for address in corners:
        before, after = takes(routes, address), takes([*routes, *made.after], address)
        assert (before and (before.path.hops, before.path.type)) == (
            after and (after.path.hops, after.path.type)
        )
        if not any(address in prefix for prefix in excused):
            assert after is not None
            assert after.own


@given(foreign, foreign4_of_metric_zero, claimed, claimed)
def test_the_changes_lead_from_any_state_to_the_wanted_one_and_then_there_are_none(some, zero, earlier, now):
    routes = some + zero
    start = [*routes, *plan(routes, *earlier, settings=Settings("reno", 10)).after]
    made = plan(start, *now)
    end = {(e.prefix, e.priority): e for e in start}
    assume(len(end) == len(start))
    for change, each in made.changes:
        key = (each.prefix, each.priority)
        assert (key in end) == (change != "add")
        assert change == "add" or end[key].own
        end.pop(key, None)
        if change != "remove":
            end[key] = each
    assert {e for e in end.values() if not e.own} == set(routes)
    assert not plan(end.values(), *now).changes
    assert {e for e in end.values() if e.own} == set(made.after)


@given(foreign, claimed)
def test_a_flush_leaves_what_the_host_had(routes, prefixes):
    steered = [*routes, *plan(routes, *prefixes).after]
    flushed = plan_routes(steered, (), NOTHING_WANTED)
    assert [change for change, _ in flushed.changes] == ["remove"] * (len(steered) - len(routes))
    assert not {each for _, each in flushed.changes} & set(routes)


@given(claimed, claimed)
def test_prefixes_that_overlap_none_of_others_are_found(some, others):
    assert apart(some, others) == {e for e in some if not any(e.overlaps(other) for other in others)}


def covers(outer, inner):
    return outer.version == inner.version and outer.supernet_of(inner)
