"""What was measured over a late link is measured again, and never because of what was measured."""

import pytest
from tidegate_lab.direction import Counters
from tidegate_lab.experiments.on_time import on_time


def counters(late_us):
    return Counters(
        offered=9, lost=0, tail_dropped=0, delivered=9, late_mean_us=late_us, late_max_us=2 * late_us
    )


@pytest.mark.parametrize(
    ("late_us", "taken"),
    [
        ([(100, 999)], 1),
        ([(100, 1000), (1000, 100), (999, 999), (1, 1)], 3),
        ([(5000, 5000)] * 12, 10),
    ],
)
def test_the_first_whose_links_were_all_on_time_is_taken_or_else_the_tenth(late_us, taken):
    measured = iter(enumerate(late_us, 1))
    number, _ = on_time(lambda: next(measured), lambda pair: map(counters, pair[1]))
    assert number == taken
