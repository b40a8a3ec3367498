"""The state directory keeps so many saved plans, and says which one it cannot remove."""

import pytest
from tidegate.errors import Failure
from tidegate.state import PLANS_KEPT, forget_old_plans


@pytest.fixture
def plans(tmp_path):
    """As many saved plans as are kept, and three older ones."""
    folder = tmp_path / "plans"
    folder.mkdir()
    saved = [folder / f"20261120T{number:06}Z-0123456789abcdef.json" for number in range(PLANS_KEPT + 3)]
    for path in saved:
        path.touch()
    return saved


def test_the_oldest_plans_go_but_not_the_one_just_saved(tmp_path, plans):
    forget_old_plans(tmp_path, plans[1])
    assert set((tmp_path / "plans").iterdir()) == {plans[1], *plans[3:]}


def test_a_plan_that_cannot_be_removed_is_named(tmp_path, plans):
    plans[0].unlink()
    plans[0].mkdir()
    with pytest.raises(Failure, match=f"{plans[0].name}: cannot be removed"):
        forget_old_plans(tmp_path, plans[-1])
