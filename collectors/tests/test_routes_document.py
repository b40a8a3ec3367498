"""What docs/steering-routes.md and docs/claims.md say is so."""

import re
from ipaddress import ip_network
from pathlib import Path

import pytest
from tidegate_edge.sockets.netns import inside
from tidegate_edge.steer.claims import Settings, want
from tidegate_edge.steer.rivals import KINDS
from tidegate_edge.steer.route_backend import RouteBackend
from tidegate_edge.steer.steering import Claim, Learn, Steering

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.root
def test_the_commands_show_our_routes_and_undo_them(host):
    host.ip("nexthop add id 10 via 192.0.2.1 dev up0")
    host.ip("route add 198.18.0.0/16 nhid 10")
    before = [host.routes(family=family) for family in (4, 6)]
    with inside(host.name):
        wanted = [ip_network(each) for each in ("198.18.7.0/24", "198.51.100.0/24", "2001:db8:5::/48")]
        RouteBackend().apply("0" * 16, dict.fromkeys(wanted, Settings("bbr")))
    (block,) = re.findall(r"```sh\n(.*?)```", (DOCS / "steering-routes.md").read_text(), re.DOTALL)
    show4, show6, *undo = block.splitlines()
    assert "198.18.7.0/24 nhid 10" in host.inside("sh", "-c", show4).stdout
    assert "2001:db8:5::/48" in host.inside("sh", "-c", show6).stdout
    for line in undo:
        host.inside("sh", "-ec", line)
    assert [host.routes(family=family) for family in (4, 6)] == before


def test_the_table_of_rivals_has_a_row_for_each_kind():
    text = (DOCS / "steering-routes.md").read_text()
    rows = text.partition("## Rivals")[2].partition("## See")[0].count("\n| ") - 1
    assert rows == len(KINDS)


@pytest.mark.parametrize(
    ("gates", "algorithm"), [(True, ("bbr", 100_000)), (False, (None, 0))], ids=["by BPF", "by routes"]
)
def test_the_example_of_claims_holds(gates, algorithm):
    everything, block, one = (ip_network(e) for e in ("0.0.0.0/0", "198.51.100.0/24", "198.51.100.7/32"))
    claims = (
        Claim(everything, None, 0, False, 30, None),
        Claim(block, "bbr", 100_000, False, 40, None),
    )
    learn = Learn((block,), 10, 100, 500_000, 10**6, 600 * 10**6, initrwnd=60)
    name, min_bytes = algorithm
    assert want(Steering("0" * 16, None, claims, learn), {one: 64}, gates=gates).settings == {
        everything: Settings(None, 30),
        block: Settings(name, 40, 60, min_bytes),
        one: Settings(name, 64, 60, min_bytes),
    }
