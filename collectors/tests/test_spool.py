"""The spool keeps every row until it is acknowledged, or counts it, wherever a crash cuts."""

import json
import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidegate_edge.errors import Failure
from tidegate_edge.ship.spool import Spool

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 40)),
        st.tuples(st.just("take"), st.integers(1, 5)),
        st.tuples(st.just("acknowledge"), st.integers(1, 5)),
        st.tuples(st.just("reopen"), st.just(0)),
        st.tuples(st.just("crash"), st.integers(0, 400)),
    ),
    max_size=60,
)


def rows(first, count):
    """`count` rows of four bytes, each its own number."""
    return b"".join(number.to_bytes(4, "big") for number in range(first, first + count))


def numbers(data):
    return [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)]


def everything(spool):
    found = []
    while (each := spool.next()) is not None:
        found += numbers(each[1])
        spool.acknowledge(each[0])
    return found


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_what_was_offered_is_delivered_pending_or_counted_as_dropped(steps):
    with TemporaryDirectory() as directory:
        path, bound = Path(directory) / "spool", 2000
        spool = Spool(path, bound, segment_bytes=300)
        offered, delivered, taken = 0, [], []
        for what, amount in steps:
            if what == "append":
                spool.append(rows(offered, amount), amount)
                offered += amount
            elif what == "take":
                taken += [each for _ in range(amount) if (each := spool.next()) is not None]
            elif what == "acknowledge":
                for frame, data in taken[:amount]:
                    spool.acknowledge(frame)
                    delivered += numbers(data)
                del taken[:amount]
            else:
                dropped, pending = spool.dropped, spool.pending
                spool.close()
                newest = max(path.glob("*.segment"), default=None)
                cut = what == "crash" and newest is not None
                if cut:
                    os.truncate(newest, max(newest.stat().st_size - amount, 0))
                spool, taken = Spool(path, bound, segment_bytes=300), []
                if not cut:
                    assert (spool.dropped, spool.pending) == (dropped, pending)
                # Of frames that lost their headers too, the next process can't know.
                offered = spool.acknowledged + spool.dropped + spool.pending
            assert spool.size <= bound
            assert spool.acknowledged + spool.dropped + spool.pending == offered
        for _frame, data in taken:
            delivered += numbers(data)
        pending = spool.pending - sum(frame.rows for frame, _data in taken)
        for frame, _data in taken:
            spool.acknowledge(frame)
        rest = everything(spool)
        assert len(rest) == pending
        assert rest == sorted(set(rest))
        assert spool.acknowledged + spool.dropped == offered
        spool.close()


def test_a_torn_tail_is_cut_and_counted(tmp_path):
    spool = Spool(tmp_path, 1 << 20)
    for first in (0, 10, 20):
        assert spool.append(rows(first, 10), 10)
    spool.close()
    (segment,) = tmp_path.glob("*.segment")
    os.truncate(segment, segment.stat().st_size - 1)
    spool = Spool(tmp_path, 1 << 20)
    assert (spool.pending, spool.dropped) == (20, 10)
    assert spool.append(rows(30, 10), 10)
    assert everything(spool) == [*range(20), *range(30, 40)]
    spool.close()


def test_a_harmed_frame_ends_its_segment_and_no_other(tmp_path):
    spool = Spool(tmp_path, 1 << 20, segment_bytes=200)
    for first in range(0, 60, 10):
        assert spool.append(rows(first, 10), 10)
    spool.close()
    oldest = min(tmp_path.glob("*.segment"))
    damaged = bytearray(oldest.read_bytes())
    damaged[40] ^= 1
    oldest.write_bytes(damaged)
    spool = Spool(tmp_path, 1 << 20, segment_bytes=200)
    found = everything(spool)
    assert found == list(range(60 - len(found), 60))
    assert 0 < len(found) < 60
    assert spool.dropped == 60 - len(found)
    spool.close()


def test_the_oldest_are_dropped_first_but_not_what_was_given_out(tmp_path):
    spool = Spool(tmp_path, 2000, segment_bytes=250)
    assert spool.append(rows(0, 10), 10)
    taken, data = spool.next()
    for first in range(10, 1000, 10):
        assert spool.append(rows(first, 10), 10)
    assert spool.again(taken) == data
    spool.acknowledge(taken)
    rest = everything(spool)
    assert rest[-1] == 999
    assert spool.dropped == 1000 - 10 - len(rest)
    assert rest[-200:] == list(range(800, 1000))
    spool.close()


def test_a_position_that_makes_no_sense_sends_again_rather_than_loses(tmp_path):
    spool = Spool(tmp_path, 1 << 20)
    for first in (0, 10):
        assert spool.append(rows(first, 10), 10)
    spool.acknowledge(spool.next()[0])
    spool.close()
    (tmp_path / "position").write_bytes(b'{"spool": 7}')
    spool = Spool(tmp_path, 1 << 20)
    assert spool.dropped == 0
    assert everything(spool) == list(range(20))
    spool.close()


def test_numbers_that_a_power_cut_took_back_are_of_another_numbering(tmp_path):
    spool = Spool(tmp_path, 1 << 20)
    for first in (0, 10):
        assert spool.append(rows(first, 10), 10)
    on_disk = {each: each.read_bytes() for each in tmp_path.iterdir()}
    assert spool.append(rows(20, 10), 10)
    sent = [spool.next()[0] for _ in range(3)]
    for frame in sent:
        spool.acknowledge(frame)
    spool.close()
    for path in tmp_path.iterdir():
        path.unlink()
    for path, content in on_disk.items():  # half a minute later the disk would have had the rest
        path.write_bytes(content)
    position = json.loads((tmp_path / "position").read_text())
    (tmp_path / "position").write_text(json.dumps(position | {"boot": "the one before"}))
    spool = Spool(tmp_path, 1 << 20)
    assert spool.append(rows(90, 10), 10)
    again = [spool.next() for _ in range(3)]
    # What was left is sent under the numbers that it had, and what came since has other names.
    assert [(frame.numbering, frame.row) for frame, _ in again[:2]] == [
        (f.numbering, f.row) for f in sent[:2]
    ]
    assert (again[2][0].row, numbers(again[2][1])) == (20, list(range(90, 100)))
    assert again[2][0].numbering != sent[2].numbering
    named = again[2][0].numbering
    spool.close()
    spool = Spool(tmp_path, 1 << 20)  # of the same boot
    assert spool.append(rows(100, 10), 10)
    *_, newest = iter(spool.next, None)
    assert (newest[0].numbering, newest[0].row) == (named, 30)
    spool.close()


def test_one_collector_at_a_time(tmp_path):
    spool = Spool(tmp_path, 1 << 20)
    with pytest.raises(Failure, match="another collector"):
        Spool(tmp_path, 1 << 20)
    spool.close()
    Spool(tmp_path, 1 << 20).close()


@pytest.mark.root
def test_a_full_disk_drops_and_counts_and_goes_on_when_there_is_space(tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", tmp_path], check=True)
    try:
        spool = Spool(tmp_path / "spool", 1 << 30)
        kept = [spool.append(rows(first, 1000), 1000) for first in range(0, 100_000, 1000)]
        assert kept == sorted(kept, reverse=True)
        assert spool.dropped == 1000 * kept.count(False) > 0
        assert everything(spool) == list(range(1000 * kept.count(True)))
        # Everything is acknowledged: its space is free for what comes.
        assert spool.append(rows(100_000, 1000), 1000)
        assert everything(spool) == list(range(100_000, 101_000))
        spool.close()
    finally:
        subprocess.run(["umount", tmp_path], check=True)
