"""Traffic classes, against longest prefix match as the standard library would do it."""

import ipaddress
import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tidegate_edge.errors import Failure
from tidegate_edge.fleet import read_fleet
from tidegate_edge.sockets.addresses import Addresses
from tidegate_edge.sockets.traffic import CLIENT, INTRA_POP, ORIGIN, POP_TO_POP, Classifier

FLEET = {
    "schema_version": 1,
    "origins": ["198.51.100.0/25", "2001:db8:0:f::/64"],
    "pops": {
        "ams1": {
            "groups": ["europe"],
            "hosts": ["edge1.ams1.example"],
            "own_prefixes": ["192.0.2.0/24", "2001:db8:1::/48"],
        },
        "fra2": {
            "groups": ["europe"],
            "hosts": ["edge1.fra2.example"],
            "own_prefixes": ["198.51.100.0/24", "2001:db8:2::/48", "2001:db8:2:0:8000::/65"],
        },
    },
}


def space(network):
    return (
        int(network.network_address) | (0xFFFF << 32 if network.version == 4 else 0)
    ), network.num_addresses


def addresses(numbers):
    high = np.array([number >> 64 for number in numbers], np.uint64)
    return Addresses(high, np.array([number & (1 << 64) - 1 for number in numbers], np.uint64))


def classes(classifier, texts, local="192.0.2.1"):
    def numbers(names):
        return [space(ipaddress.ip_network(name))[0] for name in names]

    found = classifier.classify(addresses(numbers([local] * len(texts))), addresses(numbers(texts)))
    return found.tolist()


@st.composite
def networks(draw):
    """Networks crowded into a few corners, so that they nest and touch."""
    if draw(st.booleans()):
        number, bits = draw(st.sampled_from([0, 0xC0000200, 0xFFFFFFFF])) ^ draw(st.integers(0, 1023)), 32
        return ipaddress.ip_network((number, draw(st.integers(0, bits))), strict=False)
    corner = draw(st.sampled_from([0, 1, 0x20010DB8 << 96, (0x20010DB8 << 96) - 1, (1 << 128) - 1]))
    near = corner ^ draw(st.integers(0, 7)) ^ draw(st.integers(0, 7)) << 63 ^ draw(st.integers(0, 7)) << 64
    address = ipaddress.IPv6Address(near)
    return ipaddress.ip_network((address, draw(st.integers(0, 128))), strict=False)


@given(
    prefixes=st.lists(st.tuples(networks(), st.sampled_from([POP_TO_POP, INTRA_POP, ORIGIN])), max_size=12),
    probes=st.lists(networks(), min_size=1, max_size=12),
)
@example(prefixes=[(ipaddress.ip_network("::/0"), ORIGIN)], probes=[ipaddress.ip_network("ff00::/8")])
def test_the_longest_prefix_decides(prefixes, probes):
    edges = [space(network) for network in [*probes, *(prefix for prefix, _ in prefixes)]]
    keys = [key for first, size in edges for key in (first - 1, first, first + size - 1, first + size)]
    keys = [key for key in keys if 0 <= key < 1 << 128]
    elsewhere = addresses([key ^ 1 for key in keys])
    found = Classifier(prefixes).classify(elsewhere, addresses(keys)).tolist()
    for key, kind in zip(keys, found, strict=True):
        holding = [(space(prefix), value) for prefix, value in prefixes]
        holding = [(size, value) for (first, size), value in holding if first <= key < first + size]
        narrowest = min((size for size, _ in holding), default=0)
        assert kind == next((value for size, value in reversed(holding) if size == narrowest), CLIENT)


@pytest.fixture
def fleet_file(tmp_path):
    path = tmp_path / "fleet.json"
    path.write_text(json.dumps(FLEET))
    return path


def test_a_fleet_classifies_as_seen_from_its_pop(fleet_file):
    remotes = [
        "203.0.113.9",  # nobody's of ours
        "192.0.2.9",
        "198.51.100.200",
        "198.51.100.9",  # an origin within fra2's prefix: the longer one counts
        "2001:db8:2::1",
        "2001:db8:2:0:8000::1",
        "2001:db8:0:f::1",
        "127.0.0.1",
        "::1",
        "fe80::1",
        "2001:db8:ffff::1",
    ]
    fleet = read_fleet(fleet_file)
    assert classes(fleet.classifier("ams1"), remotes, local="203.0.113.10") == [
        CLIENT,
        INTRA_POP,
        POP_TO_POP,
        ORIGIN,
        POP_TO_POP,
        POP_TO_POP,
        ORIGIN,
        INTRA_POP,
        INTRA_POP,
        INTRA_POP,
        CLIENT,
    ]
    assert classes(fleet.classifier("fra2"), remotes[1:3]) == [POP_TO_POP, INTRA_POP]


def test_a_host_that_talks_to_its_own_address_stays_within_the_pop(fleet_file):
    classifier = read_fleet(fleet_file).classifier("ams1")
    assert classes(classifier, ["203.0.113.9"], local="203.0.113.9") == [INTRA_POP]


def test_a_pop_is_known_by_its_hosts(fleet_file):
    fleet = read_fleet(fleet_file)
    assert fleet.pop_of("edge1.fra2.example") == "fra2"
    assert fleet.pop_of("elsewhere") is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"origins": ["198.51.100.7/25"]}, "$.origins[0]: 198.51.100.7/25 has host bits set"),
        ({"origins": "198.51.100.0/25"}, "$.origins: '198.51.100.0/25' is not of type 'array'"),
        ({"pops": {}}, "$.pops: {} "),
        ({"extra": 1}, "'extra' was unexpected"),
    ],
)
def test_a_wrong_fleet_is_refused_with_the_place(fleet_file, change, told):
    fleet_file.write_text(json.dumps({**FLEET, **change}))
    with pytest.raises(Failure) as caught:
        read_fleet(fleet_file)
    assert caught.value.message.startswith(f"{fleet_file}: ")
    assert told in caught.value.message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("text", ["", "{", "[1,", "\udc80"])
def test_a_fleet_that_is_no_json_is_refused(fleet_file, text):
    fleet_file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(Failure, match="no JSON"):
        read_fleet(fleet_file)
