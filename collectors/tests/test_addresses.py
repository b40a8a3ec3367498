"""Cutting addresses, against the standard library's."""

import ipaddress

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tidegate_edge.sockets.addresses import Addresses, Cut, as_text

MAPPED = 0xFFFF << 32


def addresses(numbers):
    high = np.array([number >> 64 for number in numbers], np.uint64)
    return Addresses(high, np.array([number & (1 << 64) - 1 for number in numbers], np.uint64))


@given(
    numbers=st.lists(st.integers(0, (1 << 128) - 1) | st.integers(MAPPED, MAPPED | 0xFFFFFFFF), min_size=1),
    four=st.integers(0, 32),
    six=st.integers(0, 128),
)
@example(numbers=[MAPPED - 1, MAPPED, MAPPED | 0xFFFFFFFF, MAPPED + (1 << 32)], four=24, six=56)
@example(numbers=[(1 << 128) - 1], four=24, six=64)
def test_what_is_kept_is_the_network_that_the_standard_library_names(numbers, four, six):
    cut, kept = addresses(numbers).cut(Cut(four, six))
    for index, number in enumerate(numbers):
        address = ipaddress.IPv6Address(number)
        mapped = address.ipv4_mapped
        network = ipaddress.ip_network((mapped, four) if mapped else (address, six), strict=False)
        expected = int(network.network_address) | (MAPPED if mapped else 0)
        assert int(cut.high[index]) << 64 | int(cut.low[index]) == expected
        assert int(kept[index]) == (four + 96 if mapped else six)


@pytest.mark.parametrize(
    ("address", "kept", "text"),
    [
        ("::ffff:192.0.2.0", 120, "192.0.2.0/24"),
        ("::ffff:192.0.2.7", 128, "192.0.2.7"),
        ("2001:db8:aa00::", 56, "2001:db8:aa00::/56"),
        ("2001:db8::7", 128, "2001:db8::7"),
        ("::", 128, "::"),
    ],
)
def test_people_read_addresses_as_they_write_them(address, kept, text):
    assert as_text(ipaddress.IPv6Address(address).packed, kept) == text


@pytest.mark.parametrize(("four", "six"), [(33, 56), (24, 129), (-1, 56)])
def test_no_prefix_is_longer_than_its_address(four, six):
    with pytest.raises(ValueError, match="no prefix lengths"):
        Cut(four, six)
