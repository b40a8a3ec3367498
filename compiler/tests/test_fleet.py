"""fleet.json: one inventory, one document, whatever the order and the spelling."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidegate.contracts import canonical_json, validate
from tidegate.errors import BAD_INPUT, Failure
from tidegate.fleet import fleet_document
from tidegate_dsl.model import Fleet, Pop


def test_the_document_is_sorted_and_canonical():
    fleet = Fleet(
        pops=(
            Pop("iad1", ("americas",), ("iad1-edge1",), ()),
            Pop(
                "fra2",
                ("europe", "big"),
                ("fra2-edge2", "fra2-edge1"),
                ("2001:DB8:F020:0::/48", "192.0.2.64/26", "192.0.2.9/26", "192.0.2.0/26"),
            ),
        ),
        origins=("198.18.255.1",),
    )
    document = fleet_document(fleet)
    validate(document, "fleet", "fleet.json")
    assert document == {
        "schema_version": 1,
        "pops": {
            "fra2": {
                "groups": ["big", "europe"],
                "hosts": ["fra2-edge1", "fra2-edge2"],
                "own_prefixes": ["192.0.2.0/26", "192.0.2.64/26", "2001:db8:f020::/48"],
            },
            "iad1": {"groups": ["americas"], "hosts": ["iad1-edge1"], "own_prefixes": []},
        },
        "origins": ["198.18.255.1/32"],
    }


@given(st.data())
def test_order_makes_no_difference(data):
    prefixes = data.draw(st.lists(st.ip_addresses().map(lambda address: str(ipaddress.ip_network(address)))))
    shuffled = data.draw(st.permutations(prefixes))
    one, other = (
        fleet_document(Fleet((Pop("fra2", (), (), tuple(order)),), tuple(order)))
        for order in (prefixes, shuffled)
    )
    assert canonical_json(one) == canonical_json(other)


@pytest.mark.parametrize(
    ("own", "origin"), [("192.0.2.0/33", "198.18.0.0/24"), ("192.0.2.0/24", "198.18.0.0/33")]
)
def test_what_is_no_network_is_named(own, origin):
    with pytest.raises(Failure, match=r"`(192\.0\.2|198\.18\.0)\.0/33` is not a network") as failure:
        fleet_document(Fleet((Pop("fra2", (), (), (own,)),), (origin,)))
    assert failure.value.exit_code == BAD_INPUT
