"""Evidence to windows: smoothed, bounded, expired. No I/O, no clock."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tidegate_edge.steer.prefix import Prefix, PrefixIndex, order
from tidegate_edge.steer.steering import Learn

from .evidence import weigh
from .hold_out import MILLION, draw_ppm
from .observe import Observation
from .state import BEYOND, DAMAGED, EVICTED, EXPIRED, Learned, Mean, State

MAX_DESTINATIONS: Final = 4096


def learn(state: State, observation: Observation, settings: Learn, now_us: int) -> State:
    """One interval: what the connections say now, on top of what was learned.

    Args:
        state: of the interval before; `State()` at the start.
        observation: of this one.
        settings: of the generation in force; those of the interval before may have been others.
        now_us: microseconds of a clock that never goes back.
    """
    held = under(state, settings)
    evidence = weigh(
        observation.connections,
        held.seen,
        {prefix: each.window for prefix, each in held.learned.items()},
        claims(held, settings),
        settings.toward if held.by == "prefix" else (),
    )
    now = {**evidence.counts, DAMAGED: observation.damaged, BEYOND: observation.beyond}
    fresh = replace(held, seen=evidence.seen, counts=_added(held.counts, now))
    return fold(fresh, evidence.means, settings, now_us)


def claims(state: State, settings: Learn) -> Mapping[Prefix, int]:
    """The initial window of new connections by destination, segments; none for those held out."""
    return {
        prefix: each.window
        for prefix, each in under(state, settings).learned.items()
        if each.draw_ppm >= settings.hold_out_ppm
    }


def under(state: State, settings: Learn) -> State:
    """What remains of a state under these settings: destinations of `toward`, windows within the bounds."""
    if state.settings == settings:
        return state
    toward = PrefixIndex((order(prefix), prefix) for prefix in settings.toward)
    kept = {
        prefix: replace(each, window=bounded(each.window, settings))
        for prefix, each in state.learned.items()
        if (nearest := toward.nearest(order(prefix))) and (state.by == "host" or nearest == prefix)
    }
    return replace(state, learned=kept, settings=settings)


def fold(state: State, means: Mapping[Prefix, Mean], settings: Learn, now_us: int) -> State:
    """Take the mean windows of one interval in, drop what nobody observed for too long, and keep within the limit."""
    learned = dict(state.learned)
    for prefix, mean in means.items():
        before = learned.get(prefix)
        draw = before.draw_ppm if before else draw_ppm(prefix)
        learned[prefix] = Learned(smooth(before.window if before else None, mean, settings), now_us, draw)
    alive = {
        prefix: each for prefix, each in learned.items() if now_us - each.observed_us < settings.expire_us
    }
    newest = sorted(alive.items(), key=lambda item: -item[1].observed_us)[:MAX_DESTINATIONS]
    gone = {EXPIRED: len(learned) - len(alive), EVICTED: len(alive) - len(newest)}
    return replace(state, learned=dict(newest), counts=_added(state.counts, gone))


def _added(counts: Mapping[str, int], more: Mapping[str, int]) -> Mapping[str, int]:
    return {name: count + more.get(name, 0) for name, count in counts.items()}


def smooth(before: int | None, mean: Mean, settings: Learn) -> int:
    """The window after an observation, segments (dsl/SPEC.md, section 7).

    `weight x mean + (1 - weight) x before`, rounded down, then moved into the bounds; exact, in whole numbers.
    The first observation of a destination counts whole.
    """
    weight = MILLION if before is None else settings.smooth_ppm
    value = weight * mean.total + (MILLION - weight) * (before or 0) * mean.count
    return bounded(value // (MILLION * mean.count), settings)


def bounded(window: int, settings: Learn) -> int:
    """Moved into the bounds of what may be set."""
    return min(max(window, settings.initcwnd_min), settings.initcwnd_max)
