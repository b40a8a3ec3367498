"""Claims to settings: what a prefix gets is what the nearest source that names it says, attribute by attribute."""

from collections import Counter
from ipaddress import IPv4Network, IPv6Network, ip_network
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidegate_edge.steer.claims import CANNOT_GATE, CANNOT_LEARN, Conflict, NotApplied, Settings, want
from tidegate_edge.steer.steering import Claim, Learn, Steering


def claim(prefix, congestion_control=None, min_bytes=0, ungated_fallback=False, initcwnd=None, initrwnd=None):
    return Claim(ip_network(prefix), congestion_control, min_bytes, ungated_fallback, initcwnd, initrwnd)


def wanted(*claims, toward=(), initrwnd=None, learned=None, gates=False):
    prefixes = tuple(ip_network(each) for each in toward)
    learn = Learn(prefixes, 10, 100, 500_000, 10**6, 600 * 10**6, initrwnd=initrwnd)
    windows = None if learned is None else {ip_network(prefix): n for prefix, n in learned.items()}
    return want(Steering("0" * 16, None, claims, learn if toward else None), windows, gates=gates)


def test_an_inner_claim_keeps_what_the_outer_one_sets():
    found = wanted(
        claim("198.18.0.0/16", initcwnd=40, initrwnd=80), claim("198.18.7.0/24", "bbr", initcwnd=20)
    )
    assert found.settings[ip_network("198.18.7.0/24")] == Settings("bbr", 20, 80)
    assert found.settings[ip_network("198.18.0.0/16")] == Settings(None, 40, 80)


def test_a_gated_algorithm_is_not_applied_and_its_windows_are():
    found = wanted(claim("192.0.2.0/24", "bbr", min_bytes=100_000, initcwnd=20))
    assert found.settings == {ip_network("192.0.2.0/24"): Settings(None, 20, None)}
    assert found.not_applied == (NotApplied(ip_network("192.0.2.0/24"), "congestion_control", CANNOT_GATE),)


def test_a_gated_algorithm_is_applied_ungated_where_the_claim_says_so():
    found = wanted(claim("192.0.2.0/24", "bbr", min_bytes=100_000, ungated_fallback=True))
    assert found.settings == {ip_network("192.0.2.0/24"): Settings("bbr")}
    assert not found.not_applied


def test_a_gate_of_zero_bytes_is_none():
    assert not wanted(claim("192.0.2.0/24", "bbr", min_bytes=0)).not_applied


def test_a_claim_of_which_nothing_is_left_needs_no_route():
    assert not wanted(claim("192.0.2.0/24", "bbr", min_bytes=1)).settings


def test_a_host_that_gates_keeps_the_threshold_with_its_algorithm():
    found = wanted(
        claim("198.18.0.0/16", "bbr", min_bytes=100_000, initcwnd=40),
        claim("198.18.7.0/24", "cubic"),
        claim("198.18.8.0/24", initcwnd=20),
        gates=True,
    )
    assert found.settings == {
        ip_network("198.18.0.0/16"): Settings("bbr", 40, None, 100_000),
        ip_network("198.18.7.0/24"): Settings("cubic", 40, None, 0),
        ip_network("198.18.8.0/24"): Settings("bbr", 20, None, 100_000),
    }
    assert not found.not_applied


def test_prefixes_to_learn_are_said_to_be_left_out_where_nothing_learns():
    (left_out,) = wanted(toward=["2001:db8:5::/48"]).not_applied
    assert left_out == NotApplied(ip_network("2001:db8:5::/48"), "initcwnd", CANNOT_LEARN)
    assert not wanted(toward=["2001:db8:5::/48"], learned={}).not_applied


def test_a_learned_window_stands_before_one_set_by_a_prefix_as_long_or_shorter():
    found = wanted(
        claim("0.0.0.0/0", initcwnd=30),
        claim("198.51.100.7/32", "bbr", initcwnd=40),
        claim("203.0.113.0/25", initcwnd=50),
        toward=["198.51.100.0/24"],
        learned={"198.51.100.7/32": 64, "198.51.100.8/32": 72, "203.0.113.0/24": 80},
    )
    assert found.settings == {
        ip_network("0.0.0.0/0"): Settings(None, 30),
        ip_network("198.51.100.7/32"): Settings("bbr", 64),
        ip_network("198.51.100.8/32"): Settings(None, 72),
        ip_network("203.0.113.0/24"): Settings(None, 80),
        ip_network("203.0.113.0/25"): Settings(None, 50),  # longer than what was learned
    }
    (conflict,) = found.conflicts
    assert (conflict.prefix, conflict.attribute) == (ip_network("198.51.100.7/32"), "initcwnd")
    assert (conflict.won, conflict.lost) == (64, 40)
    assert "as long or shorter" in conflict.reason


def test_the_receive_window_of_a_learn_block_holds_toward_its_prefixes_and_learned_ones_have_it():
    found = wanted(
        claim("198.51.100.0/24", initrwnd=90),
        claim("203.0.113.0/24", initrwnd=60),
        toward=["198.51.100.0/24", "203.0.113.0/24", "2001:db8:5::/48"],
        initrwnd=60,
        learned={"2001:db8:5::7/128": 40},
    )
    assert found.settings == {
        ip_network("198.51.100.0/24"): Settings(None, None, 90),
        ip_network("203.0.113.0/24"): Settings(None, None, 60),
        ip_network("2001:db8:5::/48"): Settings(None, None, 60),
        ip_network("2001:db8:5::7/128"): Settings(None, 40, 60),
    }
    (conflict,) = found.conflicts  # 60 and 60 is none
    assert isinstance(conflict, Conflict)
    assert (conflict.attribute, conflict.won, conflict.lost) == ("initrwnd", 90, 60)


def test_the_receive_window_is_offered_also_where_nothing_learns():
    assert wanted(toward=["192.0.2.0/24"], initrwnd=60).settings == {
        ip_network("192.0.2.0/24"): Settings(None, None, 60)
    }


def test_what_was_learned_under_a_generation_that_learns_no_more_does_not_count():
    found = wanted(claim("192.0.2.0/24", initcwnd=20), learned={"192.0.2.0/24": 90})
    assert (found.settings, found.conflicts) == ({ip_network("192.0.2.0/24"): Settings(None, 20)}, ())


def test_a_claim_that_cannot_be_had_conflicts_with_nothing():
    found = wanted(
        claim("192.0.2.0/24", "bbr", min_bytes=1), toward=["192.0.2.0/24"], learned={"192.0.2.0/24": 20}
    )
    assert found.settings == {ip_network("192.0.2.0/24"): Settings(None, 20)}
    assert not found.conflicts


# Few addresses and lengths, so that claims nest often.
prefixes = st.one_of(
    st.builds(
        lambda bits, length: ip_network((0xC6120000 | bits << 8, length), strict=False),
        st.integers(0, 255),
        st.integers(12, 26),
    ),
    st.builds(
        lambda bits, length: ip_network((0x20010DB8 << 96 | bits << 64, length), strict=False),
        st.integers(0, 255),
        st.integers(40, 66),
    ),
)
ADDRESSES = 400  # asked at most: each takes a walk over all that is said
windows = st.none() | st.integers(1, 100)
claims = st.lists(
    st.builds(
        Claim,
        prefix=prefixes,
        congestion_control=st.sampled_from([None, "bbr", "cubic", "reno"]),
        min_bytes=st.sampled_from([0, 100_000]),
        ungated_fallback=st.booleans(),
        initcwnd=windows,
        initrwnd=windows,
    ),
    unique_by=lambda each: each.prefix,
    max_size=12,
)


learned_windows = st.dictionaries(prefixes, st.integers(1, 100), max_size=6)
to_learn = st.lists(prefixes, max_size=4)


def sources(claims, toward, initrwnd, learned, gates):
    """Every (prefix, attribute, value) that is said, of one prefix the one that wins first."""
    said = [(prefix, "initcwnd", window) for prefix, window in learned.items() if toward]
    for each in claims:
        if each.congestion_control and (gates or not each.min_bytes or each.ungated_fallback):
            value = each.congestion_control, each.min_bytes if gates else 0
            said.append((each.prefix, "algorithm", value))
        said += [
            (each.prefix, name, getattr(each, name))
            for name in ("initcwnd", "initrwnd")
            if getattr(each, name) is not None
        ]
    return said + [(prefix, "initrwnd", initrwnd) for prefix in toward if initrwnd is not None]


def by_attribute(settings):
    algorithm = settings.congestion_control and (settings.congestion_control, settings.min_bytes)
    return {"algorithm": algorithm, "initcwnd": settings.initcwnd, "initrwnd": settings.initrwnd}


def check_by_brute_force(claims, toward, initrwnd, learned, gates):
    """The kernel's view, one longest prefix that inherits nothing, against a search for each attribute by itself."""
    found = wanted(
        *claims, toward=[str(each) for each in toward], initrwnd=initrwnd, learned=learned, gates=gates
    )
    said = sources(claims, toward, initrwnd, learned, gates)
    corners = {
        corner
        for prefix in {each[0] for each in said}
        for corner in (prefix.network_address, prefix.broadcast_address)
    }
    for address in list(corners)[:ADDRESSES]:
        over = [each for each in said if address in each[0]]
        longest = max((each for each in found.settings if address in each), key=lambda each: each.prefixlen)
        for name, value in by_attribute(found.settings[longest]).items():
            naming = [each for each in over if each[1] == name]
            nearest = max((each[0].prefixlen for each in naming), default=None)
            assert value == next((each[2] for each in naming if each[0].prefixlen == nearest), None)
    assert set(found.settings) == {each[0] for each in said}
    check_conflicts(found, said)


def check_conflicts(found, said):
    values = Counter((prefix, name) for prefix, name, _ in set(said))
    assert Counter((each.prefix, each.attribute) for each in found.conflicts) == {
        key: 1 for key, different in values.items() if different > 1
    }
    for each in found.conflicts:
        told = [value for prefix, name, value in said if (prefix, name) == (each.prefix, each.attribute)]
        assert (each.won, each.lost) == (told[0], told[-1])
        assert getattr(found.settings[each.prefix], each.attribute) == each.won


@given(claims, to_learn, windows, learned_windows, st.booleans())
def test_every_address_gets_what_the_nearest_source_says(all_claims, toward, initrwnd, learned, gates):
    check_by_brute_force(all_claims, toward, initrwnd, learned, gates)


@pytest.mark.parametrize("seed", range(4))
def test_thousands_of_nested_claims_are_resolved_as_by_brute_force(seed):
    random = Random(seed)

    def prefix():
        family, bits, start = random.choice(
            ((IPv4Network, 32, 0xC6120000), (IPv6Network, 128, 0x20010DB8 << 96))
        )
        length = random.randint(14, 32) if bits == 32 else random.randint(32, 72)
        address = start | random.getrandbits(12) << (5 if bits == 32 else 56)
        return family((address >> bits - length << bits - length, length))

    def window():
        return random.choice((None, None, random.randint(1, 100)))

    def a_claim(where):
        algorithm = random.choice((None, "bbr", "cubic", "reno"))
        min_bytes = random.choice((0, 100_000)) if algorithm else 0
        return Claim(where, algorithm, min_bytes, random.random() < 0.5, window(), window())

    all_claims = [a_claim(each) for each in {prefix() for _ in range(4000)}]
    toward = list({prefix() for _ in range(60)} | {each.prefix for each in all_claims[:20]})
    learned = {prefix(): random.randint(10, 100) for _ in range(300)}
    assert len(all_claims) > 1500
    check_by_brute_force(all_claims, toward, 60, learned, gates=bool(seed % 2))


@given(claims, to_learn, learned_windows, st.randoms())
def test_the_order_of_sources_changes_nothing(all_claims, toward, learned, random):
    def shuffled(items):
        return random.sample(list(items), len(items))

    def merged(claims, toward, learned):
        return wanted(*claims, toward=[str(each) for each in toward], initrwnd=9, learned=learned, gates=True)

    first = merged(all_claims, toward, learned)
    second = merged(shuffled(all_claims), shuffled(toward), dict(shuffled(learned.items())))
    assert second == first
    assert list(second.settings) == list(first.settings)
