"""Sampling, exclusion and pseudonyms: what a row's socket has to do with whether there is a row."""

import hashlib
import ipaddress
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tidegate_edge.errors import Failure
from tidegate_edge.keyfile import read_key
from tidegate_edge.sockets.addresses import Addresses
from tidegate_edge.sockets.pseudonym import Pseudonyms
from tidegate_edge.sockets.selection import in_sample, within

COLLECTOR = Path(sys.executable).with_name("tidegate-collector")
KEY = "00112233445566778899aabbccddeeff"


def once(*arguments):
    done = subprocess.run(
        [COLLECTOR, "once", "--json", *map(str, arguments)], capture_output=True, check=False, timeout=60
    )
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def as_halves(addresses):
    numbers = [
        int(each) | (0xFFFF << 32 if each.version == 4 else 0)
        for each in map(ipaddress.ip_address, addresses)
    ]
    return Addresses(
        np.array([n >> 64 for n in numbers], np.uint64),
        np.array([n & (1 << 64) - 1 for n in numbers], np.uint64),
    )


@pytest.fixture
def pairs():
    ends = []
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        for _ in range(60):
            ends += [socket.create_connection(listener.getsockname()), listener.accept()[0]]
        yield listener.getsockname()[1]
    for end in ends:
        end.close()


@given(st.lists(st.integers(0, 2**64 - 1)), st.integers(1, 1000), st.integers(1, 1000))
def test_a_smaller_sample_lies_within_a_larger_one(cookies, one, other):
    small, large = (in_sample(np.array(cookies, np.uint64), n) for n in (max(one, other), min(one, other)))
    assert not (small & ~large).any()
    assert in_sample(np.array(cookies, np.uint64), 1).all()


@pytest.mark.parametrize("one_in", [2, 10, 100])
def test_a_sample_of_neighbours_is_as_large_as_it_says(one_in):
    # 5 standard deviations of a binomial.
    count = 200_000
    sampled = int(in_sample(np.arange(1, count + 1, dtype=np.uint64), one_in).sum())
    assert abs(sampled - count / one_in) < 5 * (count / one_in) ** 0.5


@pytest.mark.usefixtures("pairs")
def test_a_socket_is_sampled_at_every_poll_or_never():
    whole = {row["cookie"]: row["sampled"] for row in once()[1]}
    by_either = [
        {row["cookie"] for row in once("--sample", "1/4", *reader)[1]}
        for reader in ((), ("--reader", "netlink"))
    ]
    lasting = whole.keys() & {row["cookie"] for row in once()[1]}  # others came and went between two polls
    sampled = [each & lasting for each in by_either]
    assert sampled[0] == sampled[1]
    assert 0 < len(sampled[0]) < len(lasting) * 0.5
    assert {row["sampled"] for row in once("--sample", "1/4")[1]} == {4}
    assert set(whole.values()) == {1}


@pytest.mark.parametrize("reader", ["auto", "netlink"])
def test_excluded_ports_and_prefixes_give_no_rows(pairs, reader):
    def ours(*arguments):
        rows = once("--reader", reader, *arguments)[1]
        return [row for row in rows if pairs in {row["local_port"], row["remote_port"]}]

    assert len(ours()) == 120
    assert ours("--exclude-port", pairs) == []
    assert ours("--exclude-prefix", "127.0.0.1/32") == []  # whole, though rows have a /24
    assert len(ours("--exclude-prefix", "127.0.0.2/32", "--exclude-prefix", "2001:db8::/32")) == 120


@given(
    st.lists(st.ip_addresses(), max_size=20),
    st.one_of(
        st.tuples(st.ip_addresses(v=4), st.integers(0, 32)),
        st.tuples(st.ip_addresses(v=6), st.integers(0, 128)),
    ),
)
@example([ipaddress.ip_address("::ffff:192.0.2.1")], ("192.0.2.0", 24))
def test_within_is_what_ipaddress_says(addresses, drawn):
    prefix = ipaddress.ip_network(f"{drawn[0]}/{drawn[1]}", strict=False)
    if prefix.version == 6 and prefix.overlaps(ipaddress.ip_network("::ffff:0:0/96")):
        return  # holds IPv4 as this project writes it, not as ipaddress does
    expected = [(getattr(each, "ipv4_mapped", None) or each) in prefix for each in addresses]
    assert within(as_halves(addresses), prefix).tolist() == expected


def test_a_hash_tells_addresses_apart_by_the_key_alone(tmp_path, pairs):
    key = tmp_path / "key"
    key.write_text(KEY + "\n")
    key.chmod(0o600)
    rows = once("--hash-key-file", key)[1]
    ours = {row["remote_hash"] for row in rows if pairs in {row["local_port"], row["remote_port"]}}
    whole = bytes(10) + b"\xff\xff" + bytes([127, 0, 0, 1])
    digest = hashlib.blake2b(whole, key=bytes.fromhex(KEY), digest_size=8).digest()
    assert ours == {int.from_bytes(digest, "little")}
    assert {row["remote_address"] for row in rows if row["remote_hash"] in ours} == {"127.0.0.0/24"}
    assert {row["remote_hash"] for row in once()[1]} == {0}


def test_the_key_is_in_no_representation():
    assert "3333" not in repr(Pseudonyms(b"\x33" * 16)) + str(Pseudonyms(b"\x33" * 16))
    assert "33, 33" not in repr(Pseudonyms(b"3" * 16))
    assert "333" not in repr(Pseudonyms(b"3" * 16))


@pytest.mark.parametrize("mode", [0o604, 0o620, 0o644, 0o666, 0o777])
def test_a_key_that_others_could_read_or_change_is_refused(tmp_path, mode):
    key = tmp_path / "key"
    key.write_text(KEY)
    key.chmod(mode)
    done, rows = once("--hash-key-file", key)
    assert (done.returncode, rows) == (2, [])
    assert f"its mode is {mode:04o}" in done.stderr.decode()


@pytest.mark.parametrize("mode", [0o400, 0o440, 0o600, 0o640])
def test_a_key_for_its_owner_and_group_is_read(tmp_path, mode):
    key = tmp_path / "key"
    key.write_text(KEY)
    key.chmod(mode)
    assert read_key(key) == bytes.fromhex(KEY)


@pytest.mark.parametrize("text", ["", KEY[:-2], KEY[:-1], "g" * 32, KEY * 5, "\u00e4" * 32])
def test_no_key_is_refused_without_showing_it(tmp_path, text):
    key = tmp_path / "key"
    key.write_text(text)
    key.chmod(0o600)
    with pytest.raises(Failure, match="no key of 32 to 128 hexadecimal digits") as caught:
        read_key(key)
    assert not text or text not in str(caught.value)


def test_a_pipe_is_no_key_and_holds_nobody(tmp_path):
    os.mkfifo(tmp_path / "key", 0o600)
    with pytest.raises(Failure, match="not a regular file"):
        read_key(tmp_path / "key")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--sample", "2"), "`2` is not a sample"),
        (("--sample", "1/0"), "`1/0` is not a sample"),
        (("--exclude-prefix", "192.0.2.1/24"), "has host bits set"),
        (("--exclude-port", "65536"), "65536"),
        (("--hash-key-file", "/no/such/key"), "/no/such/key: No such file"),
    ],
)
def test_wrong_choices_are_told(arguments, told):
    done, _ = once(*arguments)
    assert done.returncode == 2
    assert told in done.stderr.decode()
