"""The default algorithm: set for a while, and put back to what the host had."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidegate_edge.errors import Failure
from tidegate_edge.steer.default import Memory, decide_default, read_memory

names = st.sampled_from(["bbr", "cubic", "reno"])


def run(wanted, found, memory):
    change = decide_default(wanted, found, memory)
    return change.after, change.memory


def test_nothing_wanted_and_nothing_remembered_changes_nothing():
    assert run(None, "cubic", None) == ("cubic", None)


def test_what_was_found_is_remembered_and_put_back():
    found, memory = run("bbr", "cubic", None)
    assert (found, memory) == ("bbr", Memory("cubic", "bbr"))
    assert run(None, found, memory) == ("cubic", None)


def test_a_second_wish_does_not_forget_the_hosts_own():
    assert run("reno", *run("bbr", "cubic", None)) == ("reno", Memory("cubic", "reno"))


def test_a_default_that_someone_else_set_since_is_the_hosts_own():
    assert run(None, "reno", Memory("cubic", "bbr")) == ("reno", None)
    assert run("bbr", "reno", Memory("cubic", "bbr")) == ("bbr", Memory("reno", "bbr"))


@given(names, st.lists(names))
def test_after_any_wishes_the_hosts_own_comes_back(own, wishes):
    state = (own, None)
    for wish in wishes:
        state = run(wish, *state)
        assert state[0] == wish
        assert run(wish, *state) == state
    assert run(None, *state) == (own, None)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"before": "cubic"}'])
def test_a_damaged_memory_is_an_error_with_a_way_out(tmp_path, content):
    (tmp_path / "default.json").write_text(content)
    with pytest.raises(Failure, match=r"default\.json") as caught:
        read_memory(tmp_path)
    assert "remove" in caught.value.help
