"""Decisions as dsl/SPEC.md sections 6 and 8 to 10 say them: brute force, rule by rule, POP by POP.

Nothing of the compiler is imported, so that both can only agree by meaning the same.
"""

import hashlib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from reference_selection import Pair, holds, persistence, ranked
from tidegate_dsl.model import Apply, Guard, Policy, Pop, Select

Key = tuple[str, str]  # POP and prefix


@dataclass(frozen=True)
class Seen:
    """What the lookback of a select says of a prefix; `values` are the metrics that have one."""

    membership: str
    values: Mapping[str, Pair]


@dataclass(frozen=True)
class Selected:
    """A prefix of a generation; times are watermarks in seconds, `since` that from which it is in its arm."""

    rule: str
    held_out: bool
    admitted: int
    since: int
    qualified: int


@dataclass(frozen=True)
class Generation:
    """What is applied: who is selected, and since when a guard keeps a rule out of a POP."""

    selected: Mapping[Key, Selected] = field(default_factory=dict)
    released_since: Mapping[Key, int] = field(default_factory=dict)  # by (rule, POP)


@dataclass(frozen=True)
class Decided:
    """One run: the generation that it would make, and who waits, by (POP, prefix)."""

    generation: Generation
    deferred: frozenset[Key]
    frozen: frozenset[Key]  # (rule, POP)


Telemetry = Mapping[str, Mapping[Key, Seen]]  # by select


def decide(policy: Policy, telemetry: Telemetry, before: Generation, mark: int) -> Decided:
    """One run at the watermark `mark`."""
    taken: dict[Key, Selected] = {}
    deferred: set[Key] = set()
    frozen: set[Key] = set()
    released_since: dict[Key, int] = {}
    guards = {guard.watch: guard for guard in policy.guards}
    for rule in policy.applies:  # aborts rest on the applied generation only
        guard = guards.get(rule.name)
        turn = _Turn(policy, rule, telemetry, before, mark, {}, frozen)
        for pop in rule.pops:
            since = before.released_since.get((rule.name, pop))
            if guard and since is not None and guard.release_us and mark < since + guard.release_us // 10**6:
                released_since[rule.name, pop] = since
            elif guard and turn.active and turn.aborts(guard, pop):
                if guard.release_us is None:
                    frozen.add((rule.name, pop))
                else:
                    released_since[rule.name, pop] = mark
    for rule in policy.applies:
        guard = guards.get(rule.name)
        turn = _Turn(policy, rule, telemetry, before, mark, dict(taken), frozen)
        out = {pop for pop in rule.pops if (rule.name, pop) in released_since}
        stopped = {pop for pop in rule.pops if (rule.name, pop) in frozen}
        made = turn.take(out, stopped)
        if guard and guard.max_churn and turn.active:
            for pop in set(rule.pops) - out - stopped:
                had = {key for key in turn.had() if key[0] == pop}
                gone = had - made.keys()
                if had and len(gone) * 1_000_000 > guard.max_churn.value * len(had):
                    frozen.add((rule.name, pop))
                    made = {key: was for key, was in made.items() if key[0] != pop} | turn.unchanged(pop)
        deferred |= turn.fresh() - made.keys()
        taken |= made
    generation = Generation(taken, released_since)
    return Decided(generation, frozenset(deferred - taken.keys()), frozenset(frozen))


@dataclass(frozen=True)
class _Turn:
    """What one rule of the file decides on."""

    policy: Policy
    rule: Apply
    telemetry: Telemetry
    before: Generation
    mark: int
    taken: Mapping[Key, Selected]
    frozen: set[Key]

    @property
    def select(self) -> Select:
        return next(select for select in self.policy.selects if select.name == self.rule.select)

    @property
    def active(self) -> bool:
        span = self.rule.active
        return span is None or span.start.timestamp() <= self.mark < span.end.timestamp()

    def seen(self, key: Key) -> Seen | None:
        return self.telemetry[self.rule.select].get(key)

    def had(self) -> list[Key]:
        """What the rule has in the applied generation in its POPs; what an earlier rule has now has moved."""
        return [
            key
            for key, was in self.before.selected.items()
            if was.rule == self.rule.name and key not in self.taken and key[0] in self.rule.pops
        ]

    def fresh(self) -> set[Key]:
        """Those that are new."""
        return {
            key
            for key in self.telemetry[self.select.name]
            if self.active
            and key[0] in self.rule.pops
            and key not in self.taken
            and key not in self.before.selected
            and self.qualifies(key)
        }

    def _can_be(self, key: Key) -> bool:
        """Of the length that the select measures."""
        return ipaddress.ip_network(key[1]).prefixlen == self._length(key[1])

    def _length(self, prefix: str) -> int:
        four = ipaddress.ip_network(prefix).version == 4
        return self.select.prefix_length_ipv4 if four else self.select.prefix_length_ipv6

    def qualifies(self, key: Key) -> bool:
        """By the bounds for a prefix of the applied generation where a rule of this select has it."""
        seen = self.seen(key)
        if seen is None:
            return False
        was = self.before.selected.get(key)
        rules = {rule.name for rule in self.policy.applies if rule.select == self.select.name}
        staying = was is not None and was.rule in rules
        return not persistence(self.select, seen.membership, staying=staying) and not any(
            (value := seen.values.get(condition.metric)) is None
            or holds(
                condition.metric,
                condition.comparison,
                condition.leave if staying and condition.leave is not None else condition.value,
                value,
            )
            for condition in self.select.exclude
        )

    def aborts(self, guard: Guard, pop: str) -> bool:
        for abort in guard.aborts:
            arms: dict[bool, list[int]] = {True: [], False: []}
            for (where, prefix), was in self.before.selected.items():
                seen = self.seen((where, prefix))
                old = was.since + self.select.over_us // 10**6 <= self.mark
                if (
                    where == pop
                    and was.rule == self.rule.name
                    and old
                    and seen
                    and abort.metric in seen.values
                ):
                    arm = arms[was.held_out]
                    arm.append(ranked(abort.metric, seen.values[abort.metric]))
            need = guard.min_per_arm.value if guard.min_per_arm else 1
            if min(len(arm) for arm in arms.values()) < need:
                continue
            held_out, treated = (
                sorted(arms[arm])[-(-abort.percentile * len(arms[arm]) // 100) - 1] for arm in (True, False)
            )
            left, right = treated * 1_000_000, abort.ratio_ppm * held_out
            if left < right if abort.comparison == "<" else left > right:
                return True
        return False

    def order(self, key: Key) -> tuple[bool, int, str, tuple[int, int]]:
        """Of step 4; who was not observed stands at its end."""
        rank, seen = self.select.rank, self.seen(key)
        value = ranked(self.select.metric, seen.values[self.select.metric]) if seen else 0
        only = rank.absolute if rank.share_ppm is None else None
        highest = only.comparison in (">", ">=") if only else rank.side == "top"
        network = ipaddress.ip_network(key[1])
        place = (network.version, int(network.network_address))
        return seen is None, -value if highest else value, key[0], place

    def unchanged(self, pop: str) -> dict[Key, Selected]:
        """What a frozen POP keeps."""
        return {
            key: self._qualified_at(key, self.before.selected[key])
            for key in self.had()
            if key[0] == pop and self._can_be(key)
        }

    def _as_now(self, key: Key) -> Selected:
        was, held_out = self.before.selected[key], is_held_out(self.rule, key[1])
        moved = was.rule != self.rule.name or was.held_out != held_out
        now = replace(was, rule=self.rule.name, held_out=held_out, since=self.mark if moved else was.since)
        return self._qualified_at(key, now)

    def _qualified_at(self, key: Key, now: Selected) -> Selected:
        return replace(now, qualified=self.mark) if self.qualifies(key) else now

    def take(self, out: set[str], stopped: set[str]) -> dict[Key, Selected]:  # noqa: PLR0912
        """Steps 1 to 4: what the rule has then."""
        if not self.active:
            return {}
        made: dict[Key, Selected] = {}
        for pop in stopped:
            made |= self.unchanged(pop)
        open_pops = set(self.rule.pops) - out - stopped
        kept, held = [], []
        for key in self.had():
            if key[0] not in open_pops or not self._can_be(key):
                continue
            if self.qualifies(key):
                kept.append(key)
            elif (self.mark - self.before.selected[key].qualified) * 10**6 < self.select.hold_us:
                held.append(key)
        for key, was in self.before.selected.items():
            moves = was.rule != self.rule.name and (was.rule, key[0]) not in self.frozen
            if moves and key[0] in open_pops and key not in self.taken and self.qualifies(key):
                kept.append(key)
        for pop in open_pops:
            most = self.rule.max_prefixes.get(pop)
            staying = sorted((key for key in kept if key[0] == pop), key=self.order)
            staying += sorted((key for key in held if key[0] == pop), key=self.order)
            made |= {key: self._as_now(key) for key in (staying[: most.value] if most else staying)}
        room = {
            pop: bound.value - sum(key[0] == pop for key in made)
            for pop, bound in self.rule.max_prefixes.items()
        }
        left = None
        if self.rule.max_new_per_run:
            left = self.rule.max_new_per_run.value - sum(was.admitted == self.mark for was in made.values())
        for key in sorted(self.fresh(), key=self.order):
            if key[0] not in open_pops or room.get(key[0], 1) < 1 or (left is not None and left < 1):
                continue
            held_out = is_held_out(self.rule, key[1])
            made[key] = Selected(self.rule.name, held_out, self.mark, self.mark, self.mark)
            if key[0] in room:
                room[key[0]] -= 1
            if left is not None:
                left -= 1
        return made


def is_held_out(rule: Apply, prefix: str) -> bool:
    """Step 6."""
    first = hashlib.sha256(f"{rule.name}\n{prefix}".encode()).digest()[:8]
    return int.from_bytes(first, "big") * 1_000_000 < rule.hold_out_ppm * 2**64


def claims(
    policy: Policy, generation: Generation, pop: str, *, without: str = ""
) -> dict[str, dict[str, object]]:
    """What the hosts of a POP are told, by prefix; `without` names a rule that is left out."""
    told: dict[str, dict[str, object]] = {}
    rules = {rule.name: rule for rule in policy.applies}
    for (where, prefix), selected in generation.selected.items():
        rule = rules[selected.rule]
        if where == pop and rule.name != without and not selected.held_out:
            told[prefix] = {"congestion_control": rule.congestion_control} | (
                {"min_bytes": rule.min_bytes[pop]} if rule.min_bytes[pop] else {}
            )
    for initcwnd in policy.initcwnds:
        for prefix in initcwnd.prefixes if pop in initcwnd.pops else ():
            told.setdefault(prefix, {})["initcwnd"] = initcwnd.segments
    return told


def control_hosts(policy: Policy, pop: Pop, mark: int) -> list[str]:
    """Section 10."""
    rules = {rule.name: rule for rule in policy.applies}
    for experiment in policy.experiments:
        if pop.name not in rules[experiment.on].pops:
            continue
        if experiment.switchback_us:
            period = mark * 10**6 // experiment.switchback_us
            coin = _digest(experiment.name, pop.name, str(period // 2))[0] & 1
            if (period % 2 == 1) if coin else (period % 2 == 0):
                return sorted(pop.hosts)
        if experiment.hosts_ppm and len(pop.hosts) >= 2:
            count = max(1, experiment.hosts_ppm * len(pop.hosts) // 1_000_000)
            return sorted(sorted(pop.hosts, key=lambda host: _digest(experiment.name, host))[:count])
    return []


def _digest(*parts: str) -> bytes:
    return hashlib.sha256("\n".join(parts).encode()).digest()
