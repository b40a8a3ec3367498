"""One rule's turn in a run: all that its decisions rest on."""

import hashlib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tidegate_dsl.model import Apply, Select

from tidegate.decisions import Arm, Decision, Evidence, GuardState, Key


@dataclass(frozen=True, slots=True)
class Turn:
    """What one rule decides on.

    Attributes:
        rule: whose turn it is.
        select: the rule's.
        evidence: what telemetry says of the select.
        before: the previous generation's decisions, of all rules.
        taken: what rules earlier in the file decided in this run.
        guards: by rule and POP, what the policy's guards say.
        watermark: end of the last closed window.
        lagging: the reason, by POP, where telemetry is missing: the rule keeps what it has.
    """

    rule: Apply
    select: Select
    evidence: Evidence
    before: Mapping[Key, Decision]
    taken: Mapping[Key, Decision]
    guards: Mapping[tuple[str, str], GuardState]
    watermark: datetime
    lagging: Mapping[str, str] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        """Whether the rule applies at this watermark at all."""
        return active(self.rule, self.watermark)

    def stop(self, pop: str) -> GuardState | None:
        """The guard that stops the rule in a POP."""
        return stopped(self.guards, self.rule.name, pop)

    def standstill(self, pop: str) -> str | None:
        """Why nobody enters the rule in a POP, nor leaves it by what was measured; None: nothing stops it."""
        if pop in self.lagging:
            return self.lagging[pop]
        stop = self.stop(pop)
        return stop.because if stop else None

    def arm(self, prefix: str) -> Arm:
        """In which arm a prefix is under this rule."""
        return "held_out" if held_out(self.rule.name, prefix, self.rule.hold_out_ppm) else "treated"

    def measured_length(self, prefix: str) -> int:
        """The length by which the select measures a prefix's family."""
        four = ipaddress.ip_network(prefix).version == 4
        return self.select.prefix_length_ipv4 if four else self.select.prefix_length_ipv6


def active(rule: Apply, watermark: datetime) -> bool:
    """Whether a rule's schedule covers a watermark; a rule without one always applies."""
    return rule.active is None or rule.active.start <= watermark < rule.active.end


def stopped(guards: Mapping[tuple[str, str], GuardState], rule: str, pop: str) -> GuardState | None:
    """The state of a guard that stops a rule in a POP; None where none does."""
    state = guards.get((rule, pop))
    return state if state and state.status in {"frozen", "released"} else None


def held_out(rule: str, prefix: str, share_ppm: int) -> bool:
    """Whether a prefix is control: by a hash salted with the rule's name, so that rules draw apart.

    The first 8 bytes of SHA-256, as a fraction of 2^64, compared as integers. The POP is no part of it: a prefix
    that several POPs serve is treated in all of them or in none.
    """
    return draw(rule, prefix) * 1_000_000 < share_ppm << 64


def draw(rule: str, prefix: str) -> int:
    """What a prefix draws under a rule: a whole number below 2^64; small ones are held out."""
    return int.from_bytes(hashlib.sha256(f"{rule}\n{prefix}".encode()).digest()[:8], "big")
