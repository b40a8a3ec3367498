"""The SQL of selection and a reference written from dsl/SPEC.md alone select the same prefixes with the same figures.

TIDEGATE_REFERENCE_POLICIES is how many random policies are tried, TIDEGATE_REFERENCE_SEED which ones.
"""

import os
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from random_selection import HOSTS, SPAN_S, START_S, late, random_select, random_telemetry
from reference_selection import Telemetry, reference
from tidegate import history, windows
from tidegate.judged import misses
from tidegate.metrics import window_columns
from tidegate.select import Measurement, measure, observed_prefixes, qualifying, stays
from tidegate.telemetry.migrate import migrate
from tidegate.telemetry.store import open_store
from tidegate_dsl import check_text, read_limits, render
from tidegate_dsl.model import Select
from tidegate_dsl.vocabulary import METRICS

POLICIES = int(os.environ.get("TIDEGATE_REFERENCE_POLICIES", "1000"))
SEED = int(os.environ.get("TIDEGATE_REFERENCE_SEED", "1"))
ENOUGH = 400  # policies that meet every form and reason, with any seed
POLICIES_PER_TELEMETRY = 20
CONTRADICTIONS = {"C125", "C126"}
LIMITS = read_limits(Path(__file__).parents[2] / "policies" / "limits.yaml")
TABLES = ("socket_samples", "transfers", "host_health")
MADE = ("prefix_windows", "closed_windows", "prefix_histories", "whole_histories")
HEALTH = {  # what the reference calls a column of host_health
    "at_ns": "observed_at",
    "pop": "pop",
    "host": "host",
    "waited_us": "cpu_stalled_us",
    "observed_us": "observed_us",
    "interval_us": "interval_us",
    "stolen_us": "steal_us",
    "cpu_us": "cpu_time_us",
    "queued_us": "run_delay_us",
    "cpus": "cpus",
}
WITH_HISTORY = 0.2  # of the policies; all are selected by from closed windows alone


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    with open_store("chdb://memory") as client:
        client.set_client_setting("max_threads", 1)  # for so few rows threads only cost time
        migrate(client)
        yield client


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("inventory")
    groups = "".join(
        f"    pop_{pop}:\n      hosts:\n"
        + "".join(f"        {host}:\n" for host in hosts)
        + f"      vars:\n        tidegate_pop: {pop}\n"
        for pop, hosts in HOSTS.items()
    )
    (directory / "hosts.yml").write_text(f"pops:\n  children:\n{groups}", encoding="utf-8")
    return directory


def moment(at_s: int) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)


def draw_select(random: Random, inventory: Path) -> tuple[Select, str]:
    """A random select that the checker takes, and its text; contradictions are drawn again."""
    while True:
        text = random_select(random)
        result = check_text(f"edition 2026.1\n{text}", "random.tide", limits=LIMITS, inventory=inventory)
        if result.policy is not None:
            return result.policy.selects[0], text
        errors = {found.code for found in result.diagnostics if found.severity == "error"}
        assert errors <= CONTRADICTIONS, render(result)


def insert(client: Any, telemetry: Telemetry) -> None:
    columns = sorted({column for sample in telemetry.samples for column in sample.fields})
    rows = [
        [s.at_ns, s.pop, s.host, s.traffic, s.address, s.bits, s.algorithm, *(s.fields[c] for c in columns)]
        for s in telemetry.samples
    ]
    names = [
        "observed_at",
        "pop",
        "host",
        "traffic_class",
        "remote_address",
        "remote_prefix_length",
        "congestion_control",
        *columns,
    ]
    _insert(client, "socket_samples", rows, names)
    _insert(
        client,
        "transfers",
        [[t.at_ns, t.pop, t.address, t.bits, t.bytes, t.duration_us] for t in telemetry.transfers],
        ["finished_at", "pop", "remote_address", "remote_prefix_length", "bytes", "duration_us"],
    )
    _insert(
        client,
        "host_health",
        [[getattr(health, field) for field in HEALTH] for health in telemetry.health],
        list(HEALTH.values()),
    )


def _insert(client: Any, table: str, rows: list[list[Any]], names: list[str]) -> None:
    if rows:
        client.insert(table, rows, column_names=names)


def figures(select: Select, measured: Measurement) -> tuple[str, int | None]:
    """What the reference says of a prefix, as the compiler says it."""
    return measured.timeline, measured.metric(select.metric)


def compare(
    client: Any, select: Select, telemetry: Telemetry, mark_s: int
) -> tuple[list[Measurement], Counter[str]]:
    """Assert that both say the same of every prefix; what is selected, and a count of what was seen."""
    mark = moment(mark_s)
    judged = reference(select, telemetry, mark_s)
    measured = {(m.pop, m.prefix): m for m in measure(client, select, mark, sorted(judged))}
    assert {key: figures(select, m) for key, m in measured.items()} == {
        key: (found.membership, found.value) for key, found in judged.items()
    }
    found = qualifying(client, select, mark)
    assert {(m.pop, m.prefix): m for m in found} == {
        key: measured[key] for key, verdict in judged.items() if not verdict.misses
    }

    incumbents = reference(select, telemetry, mark_s, frozenset(judged))
    seen: Counter[str] = Counter()
    for key, prefix in measured.items():
        enter, stay = judged[key].misses, incumbents[key].misses
        for wanted, selected in ((enter, False), (stay, True)):
            said = misses(select, prefix.timeline, prefix, selected=selected)
            assert tuple(said) == wanted, (key, "selected" if selected else "not selected")
        assert stays(select, prefix) == (not stay), key
        seen["selected" if not enter else "left out"] += 1
        seen["stays though it does not enter"] += bool(enter) and not stay
        seen.update(f"misses {reason}" for reason in enter)
        seen["ipv6" if ":" in key[1] else "ipv4"] += 1
        seen["a gap"] += "." in prefix.timeline
    return found, seen


def keep(client: Any, select: Select, mark: datetime) -> None:
    newest = windows.lookback(select, mark)[-1]
    history.keep(client, windows.view_of(select), newest, select.step_us, window_columns(select))


def same_from_history(client: Any, select: Select, mark: datetime, selected: list[Measurement]) -> bool:
    """Assert that the history selects what the windows do, and counts as many; whether there is one to read.

    Of no row there is none to keep.
    """
    newest = windows.lookback(select, mark)[-1]
    by_pop = observed_prefixes(client, select, mark)
    everyone = sorted({(m.pop, m.prefix) for m in selected} | {("ams1", "198.18.1.0/24")})
    measured = measure(client, select, mark, everyone)
    keep(client, select, mark)
    assert qualifying(client, select, mark) == selected
    assert measure(client, select, mark, everyone) == measured
    assert observed_prefixes(client, select, mark) == by_pop
    return history.is_kept(client, windows.view_of(select), newest)


def forms(select: Select) -> list[str]:
    """Which forms of the language a select uses."""
    rank = select.rank
    bounds = {
        "duty_cycle": select.min_duty_cycle,
        "flap_rate": select.max_flap_rate,
        "windows": select.min_windows,
        "samples": select.min_samples,
    }
    return [
        f"measure {select.metric}",
        f"from {select.traffic}",
        f"rank {rank.side if rank.share_ppm is not None else ''}{' absolute' if rank.absolute else ''}",
        *(f"where {condition.metric}" for condition in select.where),
        *(f"exclude {condition.metric}" for condition in select.exclude),
        *(f"exclude leave {c.metric}" for c in select.exclude if c.leave is not None),
        *(f"require {name}" for name, bound in bounds.items() if bound),
        *(f"leave {name}" for name, bound in bounds.items() if bound and bound.leave is not None),
    ]


@pytest.mark.timeout(1_800)  # for as many policies as one likes
def test_sql_selects_what_the_specification_says(store: Any, inventory: Path) -> None:
    seen: Counter[str] = Counter()
    for number in range(-(-POLICIES // POLICIES_PER_TELEMETRY)):
        random = Random(f"{SEED}:{number}")
        for table in (*TABLES, *MADE):
            store.command(f"TRUNCATE TABLE {table}")
        telemetry = random_telemetry(random)
        insert(store, telemetry)
        done = []
        for _ in range(min(POLICIES_PER_TELEMETRY, POLICIES)):
            select, text = draw_select(random, inventory)
            # Any moment: the lookback ends at the last bound of a window at or before it.
            mark_s = START_S + random.choice((SPAN_S, SPAN_S - 7, random.randrange(60, SPAN_S)))
            try:
                if random.random() < 0.2:  # some windows are closed already, as a run before leaves it
                    windows.close(store, select, moment(mark_s - 3 * select.step_us // 1_000_000))
                    if random.random() < 0.5:  # as that run made it, to be carried forward below
                        keep(store, select, moment(mark_s - 3 * select.step_us // 1_000_000))
                windows.close(store, select, moment(mark_s))
                selected, counts = compare(store, select, telemetry, mark_s)
                if random.random() < WITH_HISTORY:
                    counts["from a history"] += same_from_history(store, select, moment(mark_s), selected)
            except AssertionError as error:
                where = f"seed {SEED}, telemetry {number}, watermark {mark_s}"
                raise AssertionError(f"{where}:\n{text}\n{error}") from error
            seen += counts
            seen.update(forms(select))
            done.append((select, moment(mark_s), selected))

        insert(store, late(random, telemetry))
        for select, mark, selected in random.sample(done, min(3, len(done))):
            observed = reference(select, telemetry, int(mark.timestamp()))
            assert observed_prefixes(store, select, mark) == Counter(pop for pop, _ in observed)
            assert windows.close(store, select, mark) == 0
            assert qualifying(store, select, mark) == selected, f"seed {SEED}, telemetry {number}: late rows"

    print("\n".join(f"{count:7} {what}" for what, count in sorted(seen.items())))
    if POLICIES >= ENOUGH:
        assert wanted() - set(+seen) == set()


def wanted() -> set[str]:
    """What a run must have met, or it proves less than it says."""
    places = [(metric.name, place) for metric in METRICS.values() for place in metric.places]
    return {
        *(f"{place} {name}" for name, place in places if place in ("measure", "where", "exclude")),
        *(f"exclude leave {name}" for name, place in places if place == "exclude"),
        *(f"misses {name}" for name, place in places if place == "exclude"),
        *(f"misses {name}" for name in ("windows", "duty_cycle", "flap_rate")),
        *(f"require {name}" for name in ("windows", "duty_cycle", "flap_rate", "samples")),
        *(f"leave {name}" for name in ("windows", "duty_cycle", "flap_rate")),
        *(f"from {name}" for name in ("client", "pop_to_pop", "intra_pop", "origin")),
        *("rank bottom", "rank top", "rank bottom absolute", "rank top absolute", "rank  absolute"),
        "from a history",
        *("selected", "left out", "stays though it does not enter", "ipv4", "ipv6", "a gap"),
    }
