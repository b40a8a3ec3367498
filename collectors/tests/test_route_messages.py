"""Routes in the kernel's bytes: what is written reads back as it was, and damaged bytes raise no strange error."""

import socket
from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidegate_edge.steer.netlink import (
    NLM_F_ACK,
    RTA_GATEWAY,
    RTM_NEWROUTE,
    Message,
    change_requests,
    messages,
    route_of,
)
from tidegate_edge.steer.route import UNICAST, Hop, Path, Route

# Lopsided bytes: a mask or a shift too many shows.
lopsided = st.binary(min_size=4, max_size=4).map(lambda text: b"\xa7" + text[1:])
hops = st.builds(
    Hop,
    interface=st.integers(1, 1000),
    attributes=st.just(()) | lopsided.map(lambda address: ((RTA_GATEWAY, address),)),
    weight=st.integers(1, 256),
    onlink=st.booleans(),
)


@st.composite
def routes(draw):
    length = draw(st.integers(0, 32))
    path = draw(st.lists(hops, min_size=1, max_size=4))
    if len(path) == 1:
        path = [Hop(path[0].interface, path[0].attributes, 1, path[0].onlink)]
    nexthop_id = draw(st.none() | st.integers(1, 0xFFFFFFFF))
    return Route(
        prefix=ip_network((draw(st.integers(0, 0xFFFFFFFF)), length), strict=False),
        priority=draw(st.integers(0, 0xFFFFFFFF)),
        path=Path(
            protocol=draw(st.integers(0, 255)),
            type=UNICAST,
            scope=draw(st.integers(0, 255)),
            hops=tuple(path) if nexthop_id is None else (),
            nexthop_id=nexthop_id,
            source=draw(st.none() | lopsided),
            metrics=draw(
                st.dictionaries(st.integers(1, 17), lopsided, max_size=5).map(
                    lambda d: tuple(sorted(d.items()))
                )
            ),
        ),
    )


@given(routes())
def test_a_route_written_reads_back(route):
    (message,) = messages(written("add", route))
    assert message.type == RTM_NEWROUTE
    assert route_of(message, socket.AF_INET) == route
    assert route_of(message, socket.AF_INET6) is None


@given(st.lists(routes(), max_size=5))
def test_messages_that_share_a_datagram_come_apart_and_the_last_asks_for_an_answer(several):
    read = list(messages(written("replace", *several)))
    assert [route_of(each, socket.AF_INET) for each in read] == several
    assert [each.sequence for each in read] == list(range(len(several)))
    assert [bool(each.flags & NLM_F_ACK) for each in read] == [False] * (len(several) - 1) + [True][
        : len(several)
    ]


@given(routes(), st.integers(1, 40))
def test_a_cut_datagram_is_refused(route, cut):
    with pytest.raises(ValueError, match="netlink message"):
        list(messages(written("add", route)[:-cut]))


def test_an_attribute_that_does_not_fit_is_refused():
    (message,) = messages(written("add", a_route()))
    damaged = message.body[:12] + b"\xff\xff" + message.body[14:]
    with pytest.raises(ValueError, match="netlink attribute of 65535 bytes"):
        route_of(Message(message.type, message.flags, 1, damaged), socket.AF_INET)


def test_a_removal_names_its_owner_and_no_path():
    route = a_route()
    (message,) = messages(written("remove", route))
    read = route_of(message, socket.AF_INET)
    assert (read.prefix, read.priority, read.path.protocol, read.path.hops) == (
        route.prefix, route.priority, route.path.protocol, (),
    )  # fmt: skip


def written(change, *routes):
    return b"".join(change_requests([(change, each) for each in routes]))


def a_route():
    return Route(ip_network("192.0.2.0/24"), 7, Path(201, UNICAST, 0, (Hop(3, ()),)))
