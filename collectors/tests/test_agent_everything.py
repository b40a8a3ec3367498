"""Windows for a whole address family: the default route is cloned, and what is nearer stays as it was."""

import pytest

pytestmark = pytest.mark.root
CLIENTS = {4: "198.51.100.7", 6: "2001:db8:5::7"}
NEIGHBOURS = {4: ("192.0.2.1", "192.0.2.65"), 6: ("2001:db8::1", "2001:db8:1::1")}
EVERYTHING = (("0.0.0.0/0", {"initcwnd": 30}), ("::/0", {"initcwnd": 40}))
WINDOW = {4: "initcwnd 30", 6: "initcwnd 40"}


def way(host, family, address):
    return host.ip(f"-{family} route get {address}").stdout


def everything(host):
    return [host.ip(f"-{family} route show table all").stdout for family in (4, 6)]


@pytest.mark.parametrize("family", [4, 6])
def test_a_window_for_a_family_reaches_what_goes_by_the_default_route_and_nothing_nearer(host, family):
    near = [way(host, family, address) for address in NEIGHBOURS[family]]
    before = everything(host)
    host.steer(*EVERYTHING)
    # An IPv4 default of the lowest metric leaves none to stand before it: its two halves do.
    assert host.apply()["added"] == ["0.0.0.0/1", "128.0.0.0/1", "::/0"]
    assert WINDOW[family] in way(host, family, CLIENTS[family])
    assert [way(host, family, address) for address in NEIGHBOURS[family]] == near
    assert not host.apply()["changed"]
    host.agent("flush")
    assert everything(host) == before


def test_what_is_claimed_inside_has_the_window_too_unless_it_names_its_own(host):
    host.steer(
        *EVERYTHING,
        ("198.51.100.0/24", {"congestion_control": "bbr"}),
        ("203.0.113.0/24", {"initcwnd": 50}),
    )
    host.apply()
    assert host.settings("198.51.100.0/24") == {"congestion": "bbr", "initcwnd": 30}
    assert host.settings("203.0.113.0/24") == {"initcwnd": 50}


def test_a_host_without_a_default_route_gets_none_and_the_claim_is_reported(host):
    for family in (4, 6):
        host.ip(f"-{family} route del default")
    before = everything(host)
    host.steer(*EVERYTHING)
    assert {each["prefix"] for each in host.apply()["not_applied"]} == {"0.0.0.0/0", "::/0"}
    assert everything(host) == before


@pytest.mark.parametrize("family", [4, 6])
def test_a_default_route_that_changes_is_followed_at_the_next_run(host, family):
    first, second = NEIGHBOURS[family]
    host.steer(*EVERYTHING)
    host.apply()
    host.ip(f"-{family} route replace default via {second}")
    assert f"via {first} " in way(host, family, CLIENTS[family])
    host.apply()
    assert f"via {second} " in way(host, family, CLIENTS[family])
    assert WINDOW[family] in way(host, family, CLIENTS[family])
