"""What `plan --diff` says of learning: what a block need not say comes, changes and goes."""

import pytest
from tidegate.difference import Setting, difference
from tidegate.plan import Plan

LEARN = {
    "toward": ["192.0.2.64/26"],
    "initcwnd_min": 10,
    "initcwnd_max": 100,
    "smooth_ppm": 500_000,
    "every_us": 1_000_000,
    "expire_us": 600_000_000,
}
NOTHING = {"claims": [], "control_hosts": [], "guards": [], "decisions": [], "released": []}


def plan(learn):
    return Plan({"pops": {"fra2": NOTHING | {"learn": learn}}})


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({}, {}, []),
        ({"initrwnd": 100}, {"initrwnd": 100}, []),
        ({}, {"hold_out_ppm": 100_000}, [("hold_out of destinations", "none", "10%")]),
        ({"hold_out_ppm": 100_000}, {"hold_out_ppm": 5_000}, [("hold_out of destinations", "10%", "0.5%")]),
        ({"initrwnd": 100}, {}, [("initrwnd", "100 segments", "none")]),
        (
            {"hold_out_ppm": 1},
            {"initrwnd": 300},
            [("hold_out of destinations", "0.0001%", "none"), ("initrwnd", "none", "300 segments")],
        ),
    ],
)
def test_what_a_learn_block_need_not_say_is_compared(before, after, told):
    (found,) = difference(plan(LEARN | before), plan(LEARN | after))
    assert found.settings == tuple(Setting(*each, "learn") for each in told)
    assert found.is_empty == (not told)
