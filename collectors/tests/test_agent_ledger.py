"""The ledger of generations: its rules for any history, and what is on the disk after each step."""

import os
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidegate_edge.errors import Failure
from tidegate_edge.steer.boottime import Moment, this_moment
from tidegate_edge.steer.durable import write_whole
from tidegate_edge.steer.generations import (
    KEPT,
    Ledger,
    confirm,
    confirmed,
    drop_others,
    on_probation,
    read_ledger,
    recall,
    rolled_back,
    stage_ledger,
    store,
)

DEADLINE = Moment("boot", 1)
STEPS = {
    "apply": confirmed,
    "probation": lambda ledger, number: on_probation(ledger, number, DEADLINE),
    "flush": lambda ledger, _number: confirmed(ledger, None),
    "confirm": lambda ledger, _number: confirm(ledger),
    "rollback": lambda ledger, _number: rolled_back(ledger),
}
TEXT = (
    b'{"schema_version": 1, "generation": "%016x", "default_congestion_control": null, '
    b'"claims": [], "riptide": null}'
)


def test_what_is_applied_again_is_one_generation(tmp_path):
    first = confirmed(Ledger(), store(TEXT % 1, Ledger(), tmp_path))
    second = confirmed(first, store(TEXT % 2, first, tmp_path))
    again = confirmed(second, store(TEXT % 2, second, tmp_path))
    assert again == second
    assert rolled_back(again) == first
    assert confirmed(second, store(TEXT % 1, second, tmp_path)).confirmed != second.confirmed


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=40))
def test_what_the_kernel_is_to_hold_follows_from_any_history(steps):
    ledger, model, waits = Ledger(), [], None
    for number, step in enumerate(steps, start=1):
        allowed = {"confirm": waits is not None, "rollback": waits is not None or len(model) > 1}
        if not allowed.get(step, True):
            with pytest.raises(Failure) as refused:
                STEPS[step](ledger, number)
            assert refused.value.exit_code == 1
            continue
        ledger = STEPS[step](ledger, number)
        if step == "probation":
            waits = number
        elif step == "rollback":
            model = model if waits else model[:-1]
        else:
            came = {"apply": number, "flush": None, "confirm": waits}[step]
            model = model if model[-1:] == [came] else [*model, came][-KEPT:]
        if step != "probation":
            waits = None
        assert ledger.confirmed == tuple(model)
        assert ledger.current == (waits or (model[-1] if model else None))
        assert ledger.numbers == {each for each in (*model, waits) if each is not None}


def test_a_ledger_comes_back_from_the_disk_and_only_what_it_names_is_kept(tmp_path):
    numbers = [store(TEXT % each, Ledger(), tmp_path) for each in range(4)]
    ledger = on_probation(confirmed(confirmed(Ledger(), numbers[0]), None), numbers[2], DEADLINE)
    stage_ledger(ledger, tmp_path).commit()
    assert read_ledger(tmp_path) == ledger
    drop_others(ledger, tmp_path)
    assert recall(numbers[0], tmp_path).generation == f"{0:016x}"
    assert recall(numbers[2], tmp_path).generation == f"{2:016x}"
    for gone in (numbers[1], numbers[3]):
        with pytest.raises(Failure, match="No such file"):
            recall(gone, tmp_path)


def test_a_staged_ledger_counts_only_once_it_is_committed(tmp_path):
    first = confirmed(Ledger(), None)
    stage_ledger(first, tmp_path).commit()
    staged = stage_ledger(confirmed(first, 1), tmp_path)
    assert read_ledger(tmp_path) == first
    staged.drop()
    assert [each.name for each in tmp_path.iterdir()] == ["generations.json"]


@given(st.text(alphabet=string.printable, max_size=60) | st.sampled_from(['{"confirmed": []}', "[]", "1"]))
def test_a_damaged_ledger_is_a_failure_with_a_way_out(tmp_path_factory, text):
    directory = tmp_path_factory.mktemp("state")
    (directory / "generations.json").write_text(text)
    with pytest.raises(Failure, match=r"generations\.json: not what the agent wrote there") as damaged:
        read_ledger(directory)
    assert damaged.value.help


def test_a_deadline_of_another_boot_has_passed():
    now = this_moment()
    assert now.after(5).left_ns(now) == 5
    assert now.left_ns(now.after(5)) == 0
    assert Moment("another", now.since_ns + 10**12).left_ns(now) == 0


def test_a_reader_sees_the_old_content_or_the_new(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"old", 0o600)
    opened = path.open("rb")
    write_whole(path, b"new", 0o644)
    with opened:
        assert opened.read() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208 — names alone
