"""The kernel reports the sockets to the given prefixes and no others, however many prefixes there are."""

import socket
import struct
from contextlib import ExitStack
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidegate_edge.riptide.filter import MAX_PREFIXES, select_remote
from tidegate_edge.riptide.observe import Observer

SO_COOKIE = 57
FAMILIES = {socket.AF_INET: 4, socket.AF_INET6: 6}


def taken(program, address):
    """Runs a program as net/ipv4/inet_diag.c does."""
    at, left = 0, len(program)
    while left > 0:
        code, yes, no = struct.unpack_from("=BBH", program, at)
        step = yes if code == 8 and matches(program[at + 4 : at + yes], address) else no
        at, left = at + step, left - step
    return left == 0


def valid(program):
    """Every jump goes forward to a command, to the end, or one behind it: the kernel refuses all else."""
    commands, at = [], 0
    while at < len(program):
        commands.append(at)
        at += program[at + 1]
    allowed = {*commands, len(program), len(program) + 4}
    jumps = [struct.unpack_from("=H", program, at + 2)[0] for at in commands]
    return at == len(program) and all(
        jump >= 4 and at + jump in allowed for at, jump in zip(commands, jumps, strict=True)
    )


def matches(condition, address):
    family, length, port = struct.unpack_from("=BBxxi", condition)
    assert port == -1
    wanted = condition[8:]
    if address.version == 6 and family == socket.AF_INET and address.ipv4_mapped:
        address = address.ipv4_mapped
    if FAMILIES[family] != address.version:
        return False
    bits = 8 * len(wanted)
    differ = int.from_bytes(wanted) ^ int(address)
    return differ >> bits - length == 0


def networks(version):
    """Prefixes that crowd in one corner, so that they nest, touch and share long beginnings."""
    bits, base = (32, 10 << 24) if version == 4 else (128, 0x20010DB8 << 96)
    room = bits - 16

    def network(value, length):
        return ip_network((base + (value << room - 12), length), strict=False)

    return st.builds(network, st.integers(0, 0xFFF), st.integers(8, bits))


MIXED = st.lists(st.one_of(networks(4), networks(6)), max_size=40)


@given(MIXED, st.data())
@settings(max_examples=150, deadline=None)
def test_a_program_takes_what_is_in_one_of_the_prefixes(prefixes, data):
    found = select_remote(prefixes)
    assert found.exact
    program = found.attribute[4:]
    assert struct.unpack_from("=HH", found.attribute) == (len(found.attribute), 1)
    assert valid(program)
    edges = [int(each[at]) + step for each in prefixes for at in (0, -1) for step in (-1, 0, 1)]
    corner = st.integers(10 << 24, (10 << 24) + (1 << 17))
    for number in data.draw(st.lists(st.one_of(corner, st.sampled_from(edges or [0])), max_size=30)):
        if not 0 <= number < 1 << 128:
            continue
        address = IPv4Address(number) if number < 1 << 32 else IPv6Address(number)
        assert taken(program, address) == any(address in prefix for prefix in prefixes)
        if address.version == 4:
            mapped = IPv6Address(f"::ffff:{address}")
            assert taken(program, mapped) == any(address in p or mapped in p for p in prefixes)


@given(st.randoms(use_true_random=False), st.integers(MAX_PREFIXES + 1, 3 * MAX_PREFIXES))
@settings(max_examples=10, deadline=None)
def test_beyond_the_limit_it_takes_more_and_never_less(draw, count):
    prefixes = [ip_network((number << 9, 24)) for number in draw.sample(range(1 << 23), count)]  # none touch
    found = select_remote(prefixes)
    program = found.attribute[4:]
    assert not found.exact
    assert valid(program)
    assert len(program) <= 36 * MAX_PREFIXES
    for prefix in draw.sample(prefixes, 20):
        assert taken(program, prefix[0])
        assert taken(program, prefix[-1])


def test_beyond_the_limit_the_nearest_are_widened_first():
    far = ip_network("203.0.113.7/32")
    crowd = [ip_network((number << 9, 24)) for number in range(MAX_PREFIXES)]
    found = select_remote([*crowd, far])
    assert not found.exact
    assert taken(found.attribute[4:], far[0])
    assert not taken(found.attribute[4:], far[0] + 1)


def test_nothing_toward_is_nothing_taken():
    assert not taken(select_remote([]).attribute[4:], IPv4Address("192.0.2.1"))


@pytest.fixture
def peers():
    """Connections on the loopback: the remote address of one end of each, by the kernel's number of the socket."""
    with ExitStack() as stack:
        found = {}

        def connect(listener, source, target):
            near = stack.enter_context(socket.socket(listener.family if source == "::1" else socket.AF_INET))
            near.bind((source, 0))
            near.connect((target, listener.getsockname()[1]))
            far = stack.enter_context(listener.accept()[0])
            for end in (near, far):
                cookie = struct.unpack("=Q", end.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8))[0]
                remote = ip_address(end.getpeername()[0])
                found[cookie] = getattr(remote, "ipv4_mapped", None) or remote

        dual = stack.enter_context(
            socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        )
        plain = stack.enter_context(socket.create_server(("", 0)))
        connect(dual, "::1", "::1")
        for number in range(1, 20):
            connect(dual, f"127.{number}.0.{number}", "127.0.0.1")
            connect(plain, f"127.{number}.1.{number}", f"127.0.1.{number}")
        yield found


@pytest.mark.parametrize(
    "toward",
    [
        (),
        ("127.3.0.3/32",),
        ("127.3.0.0/16", "127.4.1.4/32", "127.5.0.0/24"),
        ("127.8.0.0/13",),
        ("::1/128",),
        ("::1/128", "127.0.0.0/8"),
        ("127.0.0.1/32", "127.0.0.0/31", "2001:db8::/32"),
        (*(f"198.{18 + n // 256}.{n % 256}.0/25" for n in range(300)), "127.3.0.3/32", "::1/128"),
        tuple(f"127.{n % 20}.{n // 20}.{n % 20}/32" for n in range(1, 1100)),  # widened
    ],
)
def test_the_kernel_selects_by_remote_address(peers, toward):
    prefixes = tuple(ip_network(each) for each in toward)
    observer = Observer(prefixes)
    connections = observer.observe().connections
    observer.close()
    seen = set(connections.cookie.tolist())
    wanted = {cookie for cookie, remote in peers.items() if any(remote in p for p in prefixes)}
    assert seen & set(peers) == wanted
    for high, low in zip(connections.high.tolist(), connections.low.tolist(), strict=True):
        remote = IPv6Address(high << 64 | low)
        assert any((remote.ipv4_mapped or remote) in prefix for prefix in prefixes)
