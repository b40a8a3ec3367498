"""Claims to settings: what a prefix gets is what the nearest claim that names it says, attribute by attribute."""

from ipaddress import ip_address, ip_network

from hypothesis import given
from hypothesis import strategies as st
from tidegate_edge.steer.claims import CANNOT_GATE, NotApplied, Settings, want
from tidegate_edge.steer.prefix import Prefix
from tidegate_edge.steer.steering import Claim, Learn, Steering


def claim(prefix, congestion_control=None, min_bytes=0, ungated_fallback=False, initcwnd=None, initrwnd=None):
    return Claim(ip_network(prefix), congestion_control, min_bytes, ungated_fallback, initcwnd, initrwnd)


def wanted(*claims, toward=()):
    learn = Learn(tuple(ip_network(each) for each in toward), 10, 100, 500_000, 10**6, 600 * 10**6)
    return want(Steering("0" * 16, None, claims, learn if toward else None))


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


def test_prefixes_to_learn_are_said_to_be_left_out():
    (left_out,) = wanted(toward=["2001:db8:5::/48"]).not_applied
    assert (str(left_out.prefix), left_out.attribute) == ("2001:db8:5::/48", "initcwnd")


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


def nearest(address, all_claims, attribute):
    """Brute force: the longest claim over the address that names the attribute and may have it."""
    naming = [
        (each.prefix.prefixlen, getattr(each, attribute))
        for each in all_claims
        if address in each.prefix
        and getattr(each, attribute) is not None
        and not (attribute == "congestion_control" and each.min_bytes and not each.ungated_fallback)
    ]
    return max(naming, default=(0, None), key=lambda each: each[0])[1]


@given(claims)
def test_every_address_gets_what_the_nearest_claim_says(all_claims):
    """Read as the kernel does, by the one longest prefix, nothing inherited."""
    settings = wanted(*all_claims).settings
    for each in all_claims:
        for address in (each.prefix.network_address, each.prefix.broadcast_address):
            route = longest(settings, address)
            found = settings[route] if route else Settings()
            for attribute in ("congestion_control", "initcwnd", "initrwnd"):
                assert getattr(found, attribute) == nearest(address, all_claims, attribute)


@given(claims, st.randoms())
def test_the_order_of_claims_changes_nothing(all_claims, random):
    shuffled = list(all_claims)
    random.shuffle(shuffled)
    assert wanted(*shuffled) == wanted(*all_claims)
    assert list(wanted(*shuffled).settings) == list(wanted(*all_claims).settings)


def longest(settings, address) -> Prefix | None:
    covering = [prefix for prefix in settings if ip_address(address) in prefix]
    return max(covering, default=None, key=lambda prefix: prefix.prefixlen)
