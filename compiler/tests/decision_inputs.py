"""A small policy, its telemetry and its past, for the tests of what decides."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tidegate.decide import decide
from tidegate.decisions import Decision, Evidence
from tidegate.select import Measurement
from tidegate_dsl.model import Apply, Bound, Clause, Fleet, Policy, Pop, Rank, Select

CLAUSE = Clause(7, "rank bottom 20% of pop")
HOLD = Clause(9, "hold 2h")
NOW = datetime(2026, 11, 20, 6, tzinfo=UTC)
POPS = ("ams1", "fra2")
PREFIXES = tuple(f"198.18.{i}.0/24" for i in range(12))
WINDOWS = 72
ALL_WINDOWS = (1 << WINDOWS) - 1

SELECT = Select(
    name="slow",
    clause=CLAUSE,
    metric="delivery_rate",
    prefix_length_ipv4=24,
    prefix_length_ipv6=56,
    traffic="client",
    where=(),
    over_us=6 * 3600 * 10**6,
    step_us=300 * 10**6,
    rank=Rank("bottom", 200_000, None, CLAUSE),
    min_duty_cycle=Bound(600_000, Clause(8, "require duty_cycle >= 60%")),
    max_flap_rate=None,
    min_windows=None,
    min_samples=None,
    exclude=(),
    hold_us=2 * 3600 * 10**6,
    hold=HOLD,
)
FLEET = Fleet(
    tuple(
        Pop(name, ("europe",), tuple(f"{name}-edge{n}" for n in range(1, 5)), (f"192.0.2.{64 * i}/26",))
        for i, name in enumerate(POPS)
    ),
    ("198.18.255.0/24",),
)


def bound(value):
    return None if value is None else Bound(value, Clause(20, f"limit {value}"))


def rule(*, per_pop=None, per_run=None, hold_out_ppm=0, pops=POPS, active=None, name="bbr"):
    return Apply(
        name=name,
        clause=CLAUSE,
        select="slow",
        pops=pops,
        congestion_control="bbr",
        min_bytes={"ams1": 100_000, "fra2": 0},
        ungated_fallback=True,
        max_prefixes={} if per_pop is None else dict.fromkeys(pops, bound(per_pop)),
        max_new_per_run=bound(per_run),
        hold_out_ppm=hold_out_ppm,
        hold_out=None,
        active=active,
    )


def policy(*rules, select=SELECT, **further):
    empty = Policy(
        path="p.tide",
        digest="sha256:" + "0" * 64,
        edition="2026.1",
        fleet=FLEET,
        inventory="inventory",
        selects=(select,),
        applies=rules,
        learns=(),
        initcwnds=(),
        guards=(),
        experiments=(),
        tests=(),
    )
    return replace(empty, **further)


def measured(pop, prefix, rate=1_000_000, member=ALL_WINDOWS, **further):
    flat = Measurement(pop, prefix, WINDOWS, ALL_WINDOWS, member, 0, WINDOWS - 1, rate, 0, 0, 0, 0, 0)
    return flat._replace(**further)


def prior(pop, prefix, *, hours=1.0, name="bbr", arm="treated", admitted_hours=None):
    """A decision of the generation before, that qualified last so many hours ago."""
    admitted = NOW - timedelta(hours=hours if admitted_hours is None else admitted_hours)
    return Decision(
        pop,
        prefix,
        name,
        "slow",
        "kept",
        arm,
        "before",
        admitted,
        admitted,
        NOW - timedelta(hours=hours),
        None,
    )


def decided(a_policy, before=(), *, qualifying=(), previous=(), at=NOW, guards=()):
    """One run of a policy with the one select."""
    evidence = {"slow": Evidence(tuple(qualifying), tuple(previous))}
    return decide(a_policy, evidence, before, at, guards)


def keys(items):
    return {(item.pop, item.prefix) for item in items}
