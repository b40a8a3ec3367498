"""What a policy's `learn` block says is what the agent learns by, and the draw is that of the specification."""

import hashlib
import json
from ipaddress import ip_network
from pathlib import Path

import pytest
from tidegate.told import learn_settings
from tidegate_dsl import check_text, read_limits, render
from tidegate_edge.riptide.hold_out import draw_ppm
from tidegate_edge.steer.steering import Learn, steering_of

ROOT = Path(__file__).resolve().parents[1]
LIMITS = ROOT / "policies" / "limits.yaml"
POLICY = f"""edition 2026.1
inventory "{ROOT / "inventory"}"

learn back_office {{
  observe  cwnd by destination
  toward   peer_pops, origins
  in       all
  smooth   0.25 every 500ms
  set      initcwnd between 12 and 90 segments
  expire   10m
}}
"""


def learned_by(text):
    """What the agent of a host in fra2 reads of a policy."""
    result = check_text(text, "p.tide", limits=read_limits(LIMITS))
    assert result.policy is not None, render(result)
    told = learn_settings(result.policy, "fra2")
    document = {
        "schema_version": 1,
        "generation": "0123456789abcdef",
        "default_congestion_control": None,
        "claims": [],
        "riptide": told,
    }
    return steering_of(json.dumps(document).encode(), Path("steering.json")).learn


@pytest.mark.parametrize(
    ("clauses", "hold_out_ppm", "initrwnd"),
    [
        ("", 0, None),
        ("hold_out 12.5% of destinations\n", 125_000, None),
        ("set initrwnd 1000 segments\n", 0, 1000),
        ("set initrwnd 90 segments\nhold_out 99.9999% of destinations\n", 999_999, 90),
    ],
)
def test_every_clause_of_a_learn_block_reaches_the_agent(clauses, hold_out_ppm, initrwnd):
    learn = learned_by(POLICY.replace("  expire", f"{clauses}  expire"))
    assert learn == Learn(
        toward=learn.toward,
        initcwnd_min=12,
        initcwnd_max=90,
        smooth_ppm=250_000,
        every_us=500_000,
        expire_us=600_000_000,
        hold_out_ppm=hold_out_ppm,
        initrwnd=initrwnd,
    )
    assert learn.toward


def test_the_contracts_say_the_same_of_learning():
    read = (
        json.loads((ROOT / f"schemas/{name}.schema.json").read_text())
        for name in ("plan", "vars", "steering")
    )
    plan, variables, steering = (document["$defs"]["learn"] for document in read)
    assert plan == variables == steering


@pytest.mark.parametrize("destination", ["192.0.2.7/32", "198.51.100.0/24", "2001:db8::1/128"])
def test_a_destination_is_drawn_as_the_specification_says(destination):
    digest = hashlib.sha256(f"tidegate riptide hold-out\n{destination}".encode()).digest()
    assert draw_ppm(ip_network(destination)) == int.from_bytes(digest[:8], "big") * 1_000_000 // 2**64
    spec = (ROOT / "dsl" / "SPEC.md").read_text(encoding="utf-8")
    assert '"tidegate riptide hold-out", a line feed' in spec
