"""Closing by POP against a model that remembers every arrival: stalls, late samples, reopened windows, many runs.

What a window holds is what had come when it was closed. Selection from that is `reference_selection`, and the rest is
written here from dsl/SPEC.md and docs/late-data.md. TIDEGATE_REFERENCE_SEED is which sequences are tried.
"""

import os
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from reference_selection import SECOND_NS, Sample, Telemetry, reference
from tidegate.errors import Failure
from tidegate.late import reopen
from tidegate.run import make_plan
from tidegate.select import measure, qualifying
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate_dsl import check_text, read_limits, render

SEED = os.environ.get("TIDEGATE_REFERENCE_SEED", "1")
SEQUENCES, RUNS = 2, 9
POPS = ("ams1", "fra2", "sin1")
START_S, STEP_S, WINDOWS, GRACE_S, MAX_LAG_S = 1_763_596_800, 60, 6, 10, 120
TABLES = ("socket_samples", "prefix_windows", "closed_windows", "prefix_histories", "whole_histories")
COLUMNS = ["observed_at", "pop", "host", "traffic_class", "remote_address", "remote_prefix_length"]
LIMITS = read_limits(Path(__file__).parents[2] / "policies" / "limits.yaml")
POLICY = """edition 2026.1

select slow {
  measure  delivery_rate by prefix /24 /56
  from     traffic client
  over     6m step 1m
  rank     bottom 40% of pop
  require  duty_cycle >= 30%
}

apply bbr_for_slow {
  to       slow
  in       all
  set      congestion_control bbr
}
"""


@pytest.fixture(scope="module")
def store():
    with open_store("chdb://memory") as client:
        client.set_client_setting("max_threads", 1)
        migrate(client)
        yield client


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    directory = tmp_path_factory.mktemp("inventory")
    groups = "".join(
        f"    pop_{pop}:\n      hosts:\n        {pop}-edge1:\n      vars:\n        tidegate_pop: {pop}\n"
        for pop in POPS
    )
    (directory / "hosts.yml").write_text(f"pops:\n  children:\n{groups}", encoding="utf-8")
    result = check_text(POLICY, "late.tide", limits=LIMITS, inventory=directory)
    assert result.policy is not None, render(result)
    return result.policy


def moment(at_s):
    return datetime.fromtimestamp(at_s, UTC)


def floor(at_s):
    return at_s // STEP_S * STEP_S


@dataclass
class World:
    """All that came, what is on its way, and what each window was closed with."""

    there: list[Sample] = field(default_factory=list)
    underway: dict[str, list[Sample]] = field(default_factory=lambda: {pop: [] for pop in POPS})
    closed: dict[tuple[str, int], list[Sample]] = field(default_factory=dict)
    again: set[tuple[str, int]] = field(default_factory=set)  # reopened, and not closed since

    def window(self, pop, start):
        return [s for s in self.there if s.pop == pop and floor(s.at_ns // SECOND_NS) == start]

    def marks(self, as_of):
        found = {}
        for pop in POPS:
            times = [s.at_ns // SECOND_NS for s in self.there if s.pop == pop and s.at_ns < as_of * SECOND_NS]
            found[pop] = min(floor(as_of - GRACE_S), floor(max(times)) + STEP_S) if times else None
        return found

    def close(self, pop, mark):
        for start in range(mark - WINDOWS * STEP_S, mark, STEP_S):
            if (pop, start) not in self.closed or (pop, start) in self.again:
                self.closed[pop, start] = self.window(pop, start)
                self.again.discard((pop, start))

    def late(self, pop, mark):
        starts = range(mark - WINDOWS * STEP_S, mark, STEP_S)
        counted = {
            start: len(self.window(pop, start)) - len(self.closed[pop, start])
            for start in starts
            if (pop, start) in self.closed and (pop, start) not in self.again
        }
        return {start: count for start, count in counted.items() if count}


def drawn(random, pop, from_s, until_s):
    """Samples of a few prefixes; some prefixes are seldom seen, so that windows have gaps."""
    found = []
    for at_s in range(from_s, until_s, 20):
        for number in range(5):
            if random.random() < 0.7:
                fields = {"delivery_rate": random.choice((1, 2, 3, 4)) + number}
                at_ns = at_s * SECOND_NS + random.randrange(SECOND_NS)
                address = f"::ffff:198.18.{number}.{random.randrange(256)}"
                found.append(Sample(pop, f"{pop}-edge1", at_ns, "client", address, 128, fields))
    return found


def deliver(client, world, random, pop, *, stalled):
    """Everything, nothing, or all but a few that come another time."""
    if stalled:
        return
    kept_back = [s for s in world.underway[pop] if random.random() < 0.05]
    held = {id(s) for s in kept_back}
    come = [s for s in world.underway[pop] if id(s) not in held]
    world.underway[pop] = kept_back
    world.there += come
    if come:
        rows = [
            [s.at_ns, s.pop, s.host, s.traffic, s.address, s.bits, s.fields["delivery_rate"]] for s in come
        ]
        client.insert("socket_samples", rows, column_names=[*COLUMNS, "delivery_rate"])


def prefixes(plan, pop):
    return {d["prefix"] for d in plan.pops[pop]["decisions"]}


def plan_at(client, policy, applied, as_of):
    return make_plan(
        client, policy, applied, as_of=moment(as_of), grace=timedelta(seconds=GRACE_S),
        max_lag=timedelta(seconds=MAX_LAG_S), created_at=moment(as_of), progress=lambda _: None,
    )  # fmt: skip


def checked_run(client, policy, world, applied, as_of, seen):
    """One plan, and all that the model says of it; the plan."""
    plan = plan_at(client, policy, applied, as_of)
    marks = world.marks(as_of)
    newest = max(mark for mark in marks.values() if mark)
    least = newest - MAX_LAG_S
    if applied and int(applied.watermark.timestamp()) <= newest:
        least = max(least, int(applied.watermark.timestamp()))
    complete = [pop for pop in POPS if marks[pop] and marks[pop] >= least]
    mark = min(marks[pop] for pop in complete)
    assert plan.watermark == moment(mark)
    for pop in complete:
        world.close(pop, mark)

    of_windows = Telemetry(tuple(s for samples in world.closed.values() for s in samples))
    judged = reference(policy.selects[0], of_windows, mark)
    found = measure(client, policy.selects[0], plan.watermark, sorted(judged))
    assert {(m.pop, m.prefix): (m.timeline, m.metric("delivery_rate")) for m in found} == {
        key: (each.membership, each.value) for key, each in judged.items()
    }
    chosen = {key for key, each in judged.items() if not each.misses}
    assert {(m.pop, m.prefix) for m in qualifying(client, policy.selects[0], plan.watermark)} == chosen
    for pop in POPS:
        told = plan.pops[pop]["telemetry"]
        assert told["watermark"] == (f"{moment(marks[pop]):%Y-%m-%dT%H:%M:%SZ}" if marks[pop] else None)
        assert told["lag_s"] == (newest - marks[pop] if marks[pop] else None)
        assert bool(told["lagging"]) == (pop not in complete)
        late = world.late(pop, mark)
        assert {each["window_start"]: each["samples"] for each in told["late"]} == {
            f"{moment(start):%Y-%m-%dT%H:%M:%SZ}": count for start, count in late.items()
        }
        if pop in complete:
            assert prefixes(plan, pop) == {prefix for at, prefix in chosen if at == pop}
        else:
            assert prefixes(plan, pop) == (prefixes(applied, pop) if applied else set())
            assert not plan.pops[pop]["released"]
            seen["kept by a POP that lags"] += bool(prefixes(plan, pop))
        seen["late"] += bool(late)
        seen["lagging" if pop not in complete else "complete"] += 1
    again = plan_at(client, policy, applied, as_of)
    assert again.document == plan.document
    return plan


def reopened(client, world, random, seen):
    """Reopen some windows of a POP, in the store and in the model."""
    pop = random.choice(POPS)
    starts = sorted(start for at, start in world.closed if at == pop)
    first = random.choice(starts) if starts else START_S
    until = first + random.randint(1, 3) * STEP_S
    wanted = {(pop, s) for s in starts if first <= s < until and (pop, s) not in world.again}
    if not wanted:
        with pytest.raises(Failure, match="is closed"):
            reopen(client, pop, moment(first), moment(until))
        return
    found = reopen(client, pop, moment(first), moment(until))
    assert {(window.pop, int(window.start.timestamp())) for window in found} == wanted
    world.again |= wanted
    seen["reopened"] += 1


@pytest.mark.timeout(600)
def test_windows_hold_what_had_come_when_they_were_closed(store, policy):
    seen = Counter()
    for number in range(SEQUENCES):
        random = Random(f"{SEED}:{number}")
        for table in TABLES:
            store.command(f"TRUNCATE TABLE {table}")
        world, applied, now_s, stalled = World(), None, START_S, dict.fromkeys(POPS, 0)
        for run in range(RUNS):
            until_s = now_s + random.choice((1, 1, 2, 3)) * STEP_S
            for pop in POPS:
                world.underway[pop] += drawn(random, pop, now_s, until_s)
                if stalled[pop] == 0 and random.random() < 0.2 and pop != POPS[run % 3]:
                    stalled[pop] = random.randint(1, 4)
                deliver(store, world, random, pop, stalled=stalled[pop] > 0)
                stalled[pop] = max(0, stalled[pop] - 1)
            now_s = until_s
            if run and random.random() < 0.4:
                reopened(store, world, random, seen)
            if not world.there:
                continue
            try:
                plan = checked_run(store, policy, world, applied, now_s + random.choice((0, 15)), seen)
            except AssertionError as error:
                raise AssertionError(f"seed {SEED}, sequence {number}, run {run}: {error}") from error
            if random.random() < 0.8:
                applied = plan
    wanted = {"late", "lagging", "complete", "reopened", "kept by a POP that lags"}
    assert wanted <= set(+seen), seen
