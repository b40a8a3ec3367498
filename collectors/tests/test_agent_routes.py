"""Claims on a real kernel: the routes that the agent makes, as `ip` shows them."""

import json

import pytest

pytestmark = pytest.mark.root
BBR = {"congestion_control": "bbr"}


def test_claims_stand_in_the_kernel_for_both_families(host):
    host.steer(
        ("198.51.100.0/24", BBR | {"initcwnd": 40, "initrwnd": 60}),
        ("2001:db8:5::/48", BBR | {"initcwnd": 30}),
    )
    document = host.apply()
    assert document["changed"]
    assert document["generation"] == "0123456789abcdef"
    assert document["added"] == ["198.51.100.0/24", "2001:db8:5::/48"]
    assert host.settings("198.51.100.0/24") == {"congestion": "bbr", "initcwnd": 40, "initrwnd": 60}
    assert host.settings("2001:db8:5::/48", 6) == {"congestion": "bbr", "initcwnd": 30}
    assert host.own("198.51.100.0/24")["gateway"] == "192.0.2.1"


# The host's route to a covering prefix, the claim inside it, and what the clone must keep of it.
SHAPES = {
    "onlink": ("198.18.0.0/16 via 203.0.113.9 dev up1 onlink", {"gateway": "203.0.113.9", "flags": ["onlink"]}),
    "source": ("198.18.0.0/16 via 192.0.2.65 src 192.0.2.2", {"gateway": "192.0.2.65", "prefsrc": "192.0.2.2"}),
    "nexthop object": ("198.18.0.0/16 nhid 10", {"nhid": 10}),
    "nexthop group": ("198.18.0.0/16 nhid 12", {"nhid": 12}),
    "IPv6 gateway": (
        "198.18.0.0/16 via inet6 2001:db8::1 dev up0",
        {"via": {"family": "inet6", "host": "2001:db8::1"}},
    ),
    "device": ("198.18.0.0/16 dev up1", {"dev": "up1", "scope": "253"}),
}  # fmt: skip


@pytest.mark.parametrize(("route", "kept"), SHAPES.values(), ids=SHAPES)
def test_a_clone_goes_the_way_of_the_hosts_route(host, route, kept):
    host.ip("nexthop add id 10 via 192.0.2.1 dev up0")
    host.ip("nexthop add id 11 via 192.0.2.65 dev up1")
    host.ip("nexthop add id 12 group 10,2/11")
    host.ip(f"route add {route}")
    host.steer(("198.18.7.0/24", BBR))
    host.apply()
    assert host.own("198.18.7.0/24") | kept == host.own("198.18.7.0/24")
    assert not host.apply()["changed"]


@pytest.mark.parametrize(
    ("family", "covering", "claim", "gateways"),
    [
        (4, "198.18.0.0/16", "198.18.7.0/24", ("192.0.2.1", "192.0.2.65")),
        (6, "2001:db8:5::/48", "2001:db8:5:7::/64", ("2001:db8::1", "2001:db8:1::1")),
    ],
)
def test_a_multipath_clone_keeps_weights_and_follows_a_change(host, family, covering, claim, gateways):
    first, second = gateways
    host.ip(f"-{family} route add {covering} nexthop via {first} weight 3 nexthop via {second} weight 1")
    host.steer((claim, BBR))
    host.apply()
    hops = host.own(claim, family)["nexthops"]
    assert [(hop["gateway"], hop["weight"]) for hop in hops] == [(first, 3), (second, 1)]
    assert not host.apply()["changed"]

    host.ip(f"-{family} route replace {covering} via {second}")
    assert host.apply()["replaced"] == [claim]
    assert host.own(claim, family)["gateway"] == second
    assert not host.apply()["changed"]


def test_what_the_hosts_route_says_of_the_path_stays_also_what_is_locked(host):
    host.ip("route add 198.18.0.0/16 via 192.0.2.65 mtu lock 1400 hoplimit 60 initcwnd 12 features ecn")
    host.steer(("198.18.7.0/24", BBR | {"initrwnd": 60}))
    host.apply()
    text = host.ip("route show 198.18.7.0/24").stdout
    for words in (
        "mtu lock 1400",
        "hoplimit 60",
        "initcwnd 12",
        "features ecn",
        "initrwnd 60",
        "congctl bbr",
    ):
        assert words in text


def test_a_route_of_a_router_advertisement_is_cloned_without_its_lifetime(host):
    host.ip(
        "-6 route replace default via fe80::1 dev up0 proto ra metric 1024 expires 600 hoplimit 64 pref high"
    )
    host.steer(("2001:db8:5::/48", BBR))
    host.apply()
    own = host.own("2001:db8:5::/48", 6)
    assert (own["gateway"], own["pref"], own["metrics"][0]["hoplimit"]) == ("fe80::1", "medium", 64)
    assert "expires" not in own
    assert not host.apply()["changed"]


@pytest.mark.parametrize(
    ("family", "prefix", "words", "address", "held_by"),
    [
        (4, "198.51.100.0/24", "via 192.0.2.1", "198.51.100.200", ["198.51.100.0/25", "198.51.100.128/25"]),
        (4, "198.51.100.0/24", "via 192.0.2.1 metric 32", "198.51.100.200", ["198.51.100.0/24"]),
        (6, "2001:db8:5::/48", "via 2001:db8::1", "2001:db8:5::7", ["2001:db8:5::/48"]),
    ],
)
def test_the_hosts_own_route_to_the_very_prefix_outlives_the_agents(
    host, family, prefix, words, address, held_by
):
    host.ip(f"-{family} route add {prefix} {words}")
    before = host.routes(family=family)
    host.steer((prefix, BBR))
    assert host.apply()["added"] == held_by
    assert "congctl bbr" in host.ip(f"-{family} route get {address} fibmatch").stdout
    assert [each for each in host.routes(family=family) if each["protocol"] != "201"] == before
    assert not host.apply()["changed"]
    host.agent("flush")
    assert host.routes(family=family) == before


def test_a_clone_holds_its_metric_and_outlives_the_route_it_stands_before_until_the_next_run(host):
    prefix = "198.51.100.0/24"
    host.ip(f"route add {prefix} via 192.0.2.65 metric 32")
    host.steer((prefix, BBR))
    host.apply()
    refused = host.inside("ip", *f"route add {prefix} via 192.0.2.1 metric 31".split(), check=False)
    assert "File exists" in refused.stderr
    host.ip(f"route del {prefix} metric 32")
    assert host.own(prefix)["gateway"] == "192.0.2.65"
    host.apply()
    assert host.own(prefix)["gateway"] == "192.0.2.1"


def test_an_ipv6_route_appended_to_the_agents_is_one_with_it_and_goes_with_it(host):
    prefix = "2001:db8:5::/48"
    host.steer((prefix, BBR))
    host.apply()
    host.ip(f"-6 route append {prefix} via 2001:db8:1::1 metric 201000000 proto static")
    assert [hop["gateway"] for hop in host.own(prefix, 6)["nexthops"]] == ["2001:db8::1", "2001:db8:1::1"]
    host.agent("flush")
    assert host.routes(prefix, 6) == []


def test_only_the_agents_own_routes_go(host):
    host.ip("route add 198.18.9.0/24 via 192.0.2.65 proto static congctl reno")
    before = host.routes()
    host.steer(("198.18.7.0/24", BBR), ("198.18.8.0/24", BBR))
    host.apply()
    host.steer(("198.18.8.0/24", BBR))
    document = host.apply()
    assert (document["removed"], document["unchanged"]) == (["198.18.7.0/24"], 1)
    document = json.loads(host.agent("flush", "--json").stdout)
    assert (document["generation"], document["removed"]) == (None, ["198.18.8.0/24"])
    assert host.routes() == before


def test_a_claim_with_a_gate_is_applied_only_where_it_says_ungated(host):
    host.steer(
        ("198.18.7.0/24", BBR | {"min_bytes": 100_000, "initcwnd": 20}),
        ("198.18.8.0/24", BBR | {"min_bytes": 100_000, "ungated_fallback": True}),
    )
    (refused,) = host.apply()["not_applied"]
    assert (refused["prefix"], refused["attribute"]) == ("198.18.7.0/24", "congestion_control")
    assert "cannot gate by transfer size" in refused["reason"]
    assert host.settings("198.18.7.0/24") == {"initcwnd": 20}
    assert host.settings("198.18.8.0/24") == {"congestion": "bbr"}
