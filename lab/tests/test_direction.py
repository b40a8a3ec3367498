"""What holds for every direction of a link, whatever packets come and when."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tidegate_lab.direction import Direction
from tidegate_lab.shape import Shape

SHAPES = st.builds(
    Shape,
    rate_bps=st.sampled_from([0, 56_000, 10_000_000]),
    delay_ms=st.sampled_from([0.0, 25.0]),
    loss=st.sampled_from([0.0, 0.01, 0.5]),
    buffer_bytes=st.sampled_from([0, 3_000, 30_000]),
    seed=st.integers(0, 2**32),
)
PACKETS = st.lists(
    st.tuples(st.integers(40, 1500), st.floats(0, 0.1)), max_size=100
)  # bytes, seconds since the last


def arrivals(packets):
    now = 0.0
    for size, gap in packets:
        now += gap
        yield size, now


@given(SHAPES, PACKETS)
def test_packets_keep_their_order_and_the_delay(shape, packets):
    direction = Direction(shape)
    last = 0.0
    for size, now in arrivals(packets):
        due = direction.offer(size, now)
        if due is not None:
            assert due >= max(last, now + shape.delay_ms / 1000)
            last = due


@given(SHAPES.filter(lambda shape: shape.rate_bps and shape.buffer_bytes), PACKETS)
def test_the_queue_never_holds_more_than_the_buffer(shape, packets):
    direction = Direction(shape)
    for size, now in arrivals(packets):
        due = direction.offer(size, now)
        if due is not None:
            queued_s = due - shape.delay_ms / 1000 - now
            assert queued_s * shape.rate_bps / 8 <= shape.buffer_bytes * (1 + 1e-9) + 1e-6


@given(SHAPES.filter(lambda shape: shape.rate_bps > 0), PACKETS)
def test_no_more_leaves_than_the_rate_allows(shape, packets):
    direction = Direction(shape)
    left = [(due, size) for size, now in arrivals(packets) if (due := direction.offer(size, now)) is not None]
    for (earlier, _), (later, size) in pairwise(left):
        assert (later - earlier) * shape.rate_bps / 8 >= size * (1 - 1e-6) - 1e-3


@given(SHAPES, PACKETS)
def test_every_packet_is_counted_once(shape, packets):
    direction = Direction(shape)
    taken = sum(direction.offer(size, now) is not None for size, now in arrivals(packets))
    counters = direction.counters()
    assert counters.offered == len(packets) == counters.lost + counters.tail_dropped + taken


@given(st.integers(0, 2**32), PACKETS)
def test_the_seed_alone_says_which_packets_are_lost(seed, packets):
    at_once, spread = Direction(Shape(loss=0.5, seed=seed)), Direction(Shape(loss=0.5, delay_ms=9, seed=seed))
    assert [at_once.offer(40, 0.0) is None for _ in packets] == [
        spread.offer(size, now) is None for size, now in arrivals(packets)
    ]
