"""Random rules with all that stops them, as text, and what telemetry might say of a few prefixes."""

from collections.abc import Iterable
from datetime import UTC, datetime
from random import Random
from typing import Final

from random_selection import percent
from reference_decisions import Key, Seen, Selected

START_S: Final = 1_763_596_800
POPS: Final = {"ams1": 4, "fra2": 2, "sin1": 1}  # hosts
PREFIXES: Final = (*(f"198.18.{i}.0/24" for i in range(9)), "2001:db8:0:100::/56", "2001:db8:0:200::/56")
STRANGE: Final = ("198.18.0.0/20", "2001:db8::/40")  # of a length that no select measures
WINDOWS: Final = 4
STEP_S: Final = 60
MEASURES: Final = {"delivery_rate": "16 bps", "rtt": "10 ms", "retransmit_ratio": "2%"}
MEMBERSHIPS: Final = ("1111", "1111", "1111", "111.", "0101", "1100", "1000", "0000", "...1", ".00.")
MOMENTS_S: Final = tuple(range(0, 3_601, 300))


def random_policy(random: Random) -> str:
    """Text that the checker takes unless its clauses contradict each other."""
    selects = [_select(random, name) for name in ("slow", "lossy")]
    rules = [_rule(random, name) for name in ("first", "second", "third")[: random.randint(1, 3)]]
    named = [text.split()[1] for text in rules]
    guards = [_guard(random, rule) for rule, text in zip(named, rules, strict=True) if _guarded(random, text)]
    parts = [*selects, *rules, *guards]
    if random.random() < 0.5:
        parts.append(_experiment(random, random.choice(named)))
    if random.random() < 0.4:
        targets = random.choice(("ipv4", "198.18.1.0/24, 198.18.2.0/24", "198.18.0.0/16, ipv6"))
        parts.append(
            f"initcwnd wide {{\n  for {targets}\n  in {_pops(random)}\n  set initcwnd 30 segments\n}}\n"
        )
    return "edition 2026.1\n" + "".join(parts)


def _select(random: Random, name: str) -> str:
    metric = random.choice(tuple(MEASURES))
    bound = f"{metric} {random.choice(('<', '>='))} {MEASURES[metric]}"
    share = f"{random.choice(('bottom', 'top'))} 50% of pop"
    lines = [
        f"measure {metric} by prefix /24 /56",
        "from traffic client",
        f"over {WINDOWS * STEP_S}s step {STEP_S}s",
        f"rank {random.choice((share, bound, f'{share} and {bound}'))}",
        f"require duty_cycle >= 75%{random.choice(('', ' leave < 25%'))}",
    ]
    if random.random() < 0.4:
        lines.append(f"exclude rtt > 20 ms{random.choice(('', ' leave > 40 ms'))}")
    if random.random() < 0.6:
        lines.append(f"hold {random.choice((60, 300, 900))}s")
    return _block(f"select {name}", lines)


def _block(header: str, lines: Iterable[str]) -> str:
    return f"{header} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def _pops(random: Random) -> str:
    return random.choice(("all", "all", "all except sin1", "ams1, fra2", "ams1"))


def _rule(random: Random, name: str) -> str:
    lines = [
        f"to {random.choice(('slow', 'slow', 'lossy'))}",
        f"in {_pops(random)}",
        f"set congestion_control {random.choice(('bbr', 'reno'))}",
    ]
    if random.random() < 0.5:
        lines.append("when transfer_size >= 100 KB")
    if random.random() < 0.4:
        lines.append(f"limit {random.randint(1, 5)} prefixes per pop")
    if random.random() < 0.4:
        lines.append(f"limit {random.randint(1, 6)} new prefixes per run")
    if random.random() < 0.8:
        lines.append(f"hold_out {percent(random.choice((300_000, 500_000)))} of prefixes")
    if random.random() < 0.25:
        times = [_time(START_S + random.choice(MOMENTS_S[:4])), _time(START_S + random.choice(MOMENTS_S[5:]))]
        lines.append(f"active {times[0]} until {times[1]}")
    if random.random() < 0.3:
        override = random.choice(
            (f"limit {random.randint(1, 5)} prefixes per pop", "when transfer_size >= 250 KB")
        )
        lines.append(f"override ams1 {{ {override} }}")
    return _block(f"apply {name}", lines)


def _time(moment_s: int) -> str:
    return datetime.fromtimestamp(moment_s, UTC).strftime("%Y-%m-%dT%H:%MZ")


def _guarded(random: Random, rule: str) -> bool:
    return "hold_out" in rule and random.random() < 0.8


def _guard(random: Random, rule: str) -> str:
    lines = [f"watch {rule}"]
    aborts = random.choice((0, 1, 1, 2))
    for _ in range(aborts):
        metric, percentile = random.choice(tuple(MEASURES)), random.choice(("p1", "p10", "p50", "p51", "p99"))
        share = random.choice(("50%", "90%", "100%", "110%", "200%"))
        lines.append(f"abort when {metric} {percentile} {random.choice('<>')} {share} of hold_out")
    if aborts:
        lines.append(f"on_failure {random.choice(('freeze', 'release for 5m', 'release for 20m'))}")
        if random.random() < 0.5:
            lines.append(f"require prefixes >= {random.randint(1, 3)} per arm")
    if not aborts or random.random() < 0.4:
        lines.append(f"limit churn <= {random.choice(('20%', '50%', '100%'))} per run")
    return _block(f"guard watch_{rule}", lines)


def _experiment(random: Random, rule: str) -> str:
    lines = [
        f"on {rule}",
        random.choice(("hold_out 30% of hosts", "hold_out 50% of hosts", "switchback 10m")),
    ]
    if "switchback" not in lines[1] and random.random() < 0.4:
        lines.append("switchback 15m")
    return _block(f"experiment trial{random.randint(1, 9)}", lines)


def random_telemetry(random: Random, measured: str) -> dict[Key, Seen]:
    """What the lookback of a select that measures this metric says; nobody is observed without a value of it."""
    found = {}
    for pop in POPS:
        for prefix in PREFIXES:
            values = {
                "delivery_rate": (random.choice((8, 16, 16, 24)), 1),
                "retransmit_ratio": (random.choice((0, 1, 2, 7)), random.choice((70, 100))),
                "rtt": (random.choice((5_000, 10_000, 25_000, 50_000)), 1),
            }
            if measured != "rtt" and random.random() < 0.25:
                del values["rtt"]
            membership = random.choice(MEMBERSHIPS)
            if random.random() < 0.85:
                found[pop, prefix] = Seen(membership, values)
    return found


def random_past(random: Random, rules: Iterable[str]) -> dict[Key, Selected]:
    """A generation that some run before left, of rules that are there or gone."""
    names = (*rules, *rules, "gone")
    past = {}
    for pop in POPS:
        for prefix in (*PREFIXES, *STRANGE):
            if random.random() < 0.4:
                admitted = START_S - random.choice((60, 120, 180, 239, 240, 300, 1_200))
                qualified = random.choice((admitted, max(admitted, START_S - 120)))
                since = max(admitted, START_S - random.choice((120, 240, 1_200)))
                past[pop, prefix] = Selected(
                    random.choice(names), random.random() < 0.4, admitted, since, qualified
                )
    return past
