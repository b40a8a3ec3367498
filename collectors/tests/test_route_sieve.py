"""Of a long table only what a plan depends on is read: the plan is the one that the whole table gives."""

import socket
import struct
from contextlib import suppress
from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidegate_edge.sockets.netns import inside
from tidegate_edge.steer.claims import Settings, Wanted
from tidegate_edge.steer.host_plan import ENOUGH, plan_for_host
from tidegate_edge.steer.kernel import read_routes, read_some_routes
from tidegate_edge.steer.netlink import (
    RTA_DST,
    RTA_OIF,
    RTA_PRIORITY,
    RTA_TABLE,
    RTM_NEWROUTE,
    messages,
    route_of,
)
from tidegate_edge.steer.prefix import order
from tidegate_edge.steer.route import ROUTE_PROTOCOL, UNICAST
from tidegate_edge.steer.sieve import Sieve

MAIN = 254
NLMSG_DONE = 3
FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
BBR = Settings("bbr", 40)
MANY = 6000


def attribute(kind, payload):
    return struct.pack("=HH", 4 + len(payload), kind) + payload


def written(prefix, priority=0, *, protocol=4, tos=0, interface=1):
    """A route as a dump has it: the table before the prefix, and a prefix only where there is one."""
    family, length = FAMILIES[prefix.version], prefix.prefixlen
    body = struct.pack("=BBBBBBBBI", family, length, 0, tos, MAIN, protocol, 0, UNICAST, 0)
    body += attribute(RTA_TABLE, struct.pack("=I", MAIN))
    body += attribute(RTA_DST, prefix.network_address.packed) if length else b""
    body += attribute(RTA_PRIORITY, struct.pack("=I", priority))
    body += attribute(RTA_OIF, struct.pack("=I", interface))
    return struct.pack("=IHHII", 16 + len(body), RTM_NEWROUTE, 2, 1, 0) + body


nets = st.builds(
    lambda bits, length: ip_network((0xC6120000 | bits << 8, length), strict=False),
    st.integers(0, 255),
    st.integers(0, 32),
) | st.builds(
    lambda bits, length: ip_network((0x20010DB8 << 96 | bits << 62, length), strict=False),
    st.integers(0, 255),
    st.integers(0, 128),
)
tables = st.lists(
    st.builds(
        lambda prefix, metric, protocol, tos, interface: (
            (order(prefix), metric if prefix.version == 4 else metric or 1024),
            written(
                prefix,
                metric if prefix.version == 4 else metric or 1024,
                protocol=protocol,
                tos=tos,
                interface=interface,
            ),
        ),
        nets,
        st.sampled_from([0, 0, 32]),
        st.sampled_from([4, 4, 4, ROUTE_PROTOCOL]),
        st.sampled_from([0, 0, 0, 8]),
        st.integers(1, 3),
    ),
    max_size=40,
    unique_by=lambda each: each[0],
).map(lambda found: [text for _, text in sorted(found)])


@given(tables, st.lists(nets, unique=True, max_size=6), st.integers(1, 40))
def test_a_plan_of_what_is_let_through_is_the_plan_of_the_whole_table(table, prefixes, a_datagram):
    by_family = {family: [text for text in table if text[16] == family] for family in FAMILIES.values()}

    def sifted(claims, parts, enough):
        found = []
        for family, texts in by_family.items():
            sieve = Sieve(family, claims, parts, enough)
            for start in range(0, len(texts), a_datagram):
                datagram = b"".join(texts[start : start + a_datagram])
                found += [route_of(each, family) for each in sieve.sift(datagram)]
        return found

    whole = [
        route_of(each, family) for family, texts in by_family.items() for each in messages(b"".join(texts))
    ]
    wanted = Wanted(dict.fromkeys(prefixes, BBR), ())
    assert plan_for_host(wanted, sifted) == plan_for_host(wanted, lambda *_: whole)


def test_so_many_inside_a_claim_are_let_through_and_none_beside_it():
    texts = [written(ip_network((0xC6120000 + 256 * n, 24)), 32) for n in range(512)]
    claims = [ip_network("198.18.0.0/17"), ip_network("198.19.255.0/24")]
    sieve = Sieve(socket.AF_INET, claims, (), 4)
    through = [
        str(route_of(each, socket.AF_INET).prefix)
        for half in (texts[:256], texts[256:])
        for each in sieve.sift(b"".join(half))
    ]
    assert through == [f"198.18.{n}.0/24" for n in range(4)] + ["198.19.255.0/24"]


def test_what_is_no_route_or_of_another_form_is_let_through():
    claim = [ip_network("192.0.2.0/24")]
    done = struct.pack("=IHHIIi", 20, NLMSG_DONE, 2, 1, 0, 0)
    unlike = bytearray(written(ip_network("198.51.100.0/24"), 32))
    struct.pack_into("=H", unlike, 30, RTA_OIF)  # where the table is looked for
    interrupted = bytearray(written(ip_network("198.51.100.0/24"), 32))
    struct.pack_into("=H", interrupted, 6, 0x10)  # NLM_F_DUMP_INTR
    datagram = bytes(unlike) + written(ip_network("203.0.113.0/24"), 32) + bytes(interrupted) + done
    every = list(messages(datagram))
    sieve = Sieve(socket.AF_INET, claim, (), 4)
    assert list(sieve.sift(datagram)) == [every[0], every[2], every[3]]


@given(st.binary(max_size=40), st.integers(0, 200))
def test_a_damaged_datagram_is_refused_and_raises_nothing_strange(noise, cut):
    claim = [ip_network("192.0.2.0/24")]
    whole = written(ip_network("192.0.2.0/25"), 32) * 3
    sieve = Sieve(socket.AF_INET, claim, (), 4)
    with suppress(ValueError, struct.error):
        list(sieve.sift(whole[:cut] + noise))


# What a host may have beside what claims are about: each of these the kernel writes in another form.
HOST = """
route add 198.18.0.0/15 nexthop via 192.0.2.1 weight 2 nexthop via 192.0.2.2
route add unreachable 198.18.5.0/24
route add 198.18.6.0/24 via 192.0.2.1
route add 198.18.6.0/25 via 192.0.2.1
route add 198.18.6.64/26 via 192.0.2.2
route add 198.18.6.0/24 tos 8 via 192.0.2.1 metric 7
route add 198.18.7.7 via 192.0.2.1 mtu lock 1400
-6 route add 2001:db8:a::/48 nexthop via 2001:db8::11 nexthop via 2001:db8::12
-6 route add blackhole 2001:db8:a:5::/64
-6 route add 2001:db8:a:6::/64 via 2001:db8::11 metric 1
"""


@pytest.mark.root
def test_of_thousands_of_the_kernels_routes_few_are_read_and_the_plan_is_the_same(host):
    batch = host.directory / "routes"
    batch.write_text(
        "".join(
            [f"{line}\n" for line in HOST.split("\n") if line and not line.startswith("-6")]
            + [
                f"route add 11.{n >> 8}.{n & 255}.0/24 via 192.0.2.{1 + n % 9} metric 32\n"
                for n in range(MANY)
            ]
            + [f"route add 198.18.6.{n} via 192.0.2.1\n" for n in range(9)]
            + [f"route add 198.19.{n}.0/24 via 192.0.2.1 metric 32\n" for n in range(256)]
        )
    )
    host.ip(f"-batch {batch}")
    batch.write_text(
        "".join(
            [f"{line[3:]}\n" for line in HOST.split("\n") if line.startswith("-6")]
            + [f"route add 2001:db8:b:{n:x}::/64 via 2001:db8::11 metric 32\n" for n in range(MANY)]
        )
    )
    host.ip(f"-6 -batch {batch}")
    prefixes = [
        "198.18.4.0/24", "198.18.5.0/24", "198.18.6.0/24", "198.18.7.0/24", "198.18.7.7/32", "198.19.0.0/16",
        "11.0.7.0/24", "11.5.0.0/16", "0.0.0.0/0", "2001:db8:a::/48", "2001:db8:a:5::/64", "2001:db8:a:6::/64",
        "2001:db8:b::/48", "2001:db8:b:9::/80", "::/0",
    ]  # fmt: skip
    wanted = Wanted({ip_network(each): BBR for each in prefixes}, ())
    with inside(host.name):
        whole = read_some_routes(10 * MANY)
        few = read_routes(wanted.settings.keys(), (), ENOUGH)
        plan = plan_for_host(wanted)
    assert len(whole) > 2 * MANY
    assert len(few) < len(whole) / 4
    assert plan == plan_for_host(wanted, lambda *_: whole)
    assert plan.changes
    assert len(plan.notices) > 4
    assert plan.parts  # of 198.18.6.0/24: what only a second reading knows of
