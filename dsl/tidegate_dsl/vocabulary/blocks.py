"""Every block and its clauses: how each is written, what it says, and whether its block needs it."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ClauseRule:
    """A clause of a block.

    Attributes:
        keyword: its first word.
        forms: how it is written, one entry a form.
        meaning: what it says, in one sentence: the specification, an editor's hover and error help show it.
        required: its block needs it.
        subject: where it may stand once for each subject, the one that its block needs (`initcwnd` of `set`).
        repeats: it may stand any number of times; otherwise once, or once for each subject (`require windows`).
    """

    keyword: str
    forms: tuple[str, ...]
    meaning: str
    required: bool = False
    repeats: bool = False
    subject: str = ""


TOP_LEVEL: Final = {
    rule.keyword: rule
    for rule in (
        ClauseRule(
            "edition",
            ("edition 2026.1",),
            "the language's edition; the first clause of the file",
            required=True,
        ),
        ClauseRule(
            "inventory",
            ('inventory "PATH"',),
            "the directory that holds `hosts.yml`, or that file, relative to the policy",
            required=True,
        ),
    )
}

_IN: Final = ClauseRule(
    "in",
    ("in POP, GROUP [except POP, GROUP]",),
    "where: `all`, groups and POPs; an exception must take something away and leave something",
    required=True,
)

_SELECT = (
    ClauseRule(
        "measure",
        ("measure METRIC by prefix /LENGTH /LENGTH",),
        "the ranked metric, and how long the prefixes of IPv4 and IPv6 are",
        required=True,
    ),
    ClauseRule(
        "from",
        ("from traffic CLASS [where CONDITION and CONDITION]",),
        "which samples count",
        required=True,
    ),
    ClauseRule("over", ("over DURATION step DURATION",), "the lookback, and its windows", required=True),
    ClauseRule(
        "rank",
        ("rank bottom|top N% of pop [and METRIC < VALUE]", "rank METRIC < VALUE"),
        "which observed prefixes are members of a window: a share of them, those beyond an absolute value, or both",
        required=True,
    ),
    ClauseRule(
        "require",
        (
            "require duty_cycle >= N% [leave < N%]",
            "require flap_rate <= N% [leave > N%]",
            "require windows >= N [leave < N]",
            "require samples >= N per window",
        ),
        "what a prefix needs to be selected, and with `leave` what makes a selected one go",
    ),
    ClauseRule(
        "exclude",
        ("exclude METRIC < VALUE [leave < VALUE]",),
        "leaves a prefix out whose value over the lookback fulfils the comparison",
        repeats=True,
    ),
    ClauseRule("hold", ("hold DURATION",), "how long a selected prefix stays after it last qualified"),
)
_LIMIT_PER_POP: Final = "limit N prefixes per pop"
_WHEN: Final = "when transfer_size >= SIZE"

_APPLY = (
    ClauseRule("to", ("to SELECT",), "whose prefixes", required=True),
    _IN,
    ClauseRule(
        "set", ("set congestion_control ALGORITHM",), "one of the limits file's `algorithms`", required=True
    ),
    ClauseRule(
        "when",
        (_WHEN,),
        "bytes that a transfer must pass first; without it the algorithm applies from the start",
    ),
    ClauseRule(
        "fallback",
        ("fallback ungated",),
        "on a host that can not gate by size, apply to every transfer; without it such a claim is not applied",
    ),
    ClauseRule(
        "limit",
        (_LIMIT_PER_POP, "limit N new prefixes per run"),
        "most prefixes at a time in one POP, or most that are admitted at one watermark over all POPs",
    ),
    ClauseRule(
        "hold_out", ("hold_out N% of prefixes",), "share that is selected and kept untreated, as control"
    ),
    ClauseRule(
        "active",
        ("active TIME until TIME",),
        "the rule applies at watermarks from the first time until before the second, UTC",
    ),
    ClauseRule("override", (f"override POP {{ {_WHEN} }}",), "another threshold or limit in one POP of `in`"),
)

_OVERRIDE = (
    ClauseRule("when", (_WHEN,), "the threshold in this POP"),
    ClauseRule("limit", (_LIMIT_PER_POP,), "most prefixes at a time in this POP"),
)

_LEARN = (
    ClauseRule(
        "observe",
        ("observe cwnd by destination",),
        "congestion windows of open connections, by destination",
        required=True,
    ),
    ClauseRule(
        "toward",
        ("toward peer_pops, origins",),
        "which destinations: own prefixes of the inventory's other POPs, its origins, or both",
        required=True,
    ),
    _IN,
    ClauseRule(
        "smooth",
        ("smooth N every DURATION",),
        "weight of the newest observation, above 0 and up to 1, and the interval between two",
        required=True,
    ),
    ClauseRule(
        "set",
        ("set initcwnd between N and N segments", "set initrwnd N segments"),
        "inclusive bounds of a learned window, or the receive window that the destinations are offered at first",
        required=True,
        subject="initcwnd",
    ),
    ClauseRule(
        "expire", ("expire DURATION",), "life of what was learned without a new observation", required=True
    ),
    ClauseRule(
        "hold_out",
        ("hold_out N% of destinations",),
        "share of the destinations that are observed and get no learned window, as control",
    ),
)

_INITCWND = (
    ClauseRule(
        "for",
        ("for ipv4|ipv6|PREFIX, PREFIX",),
        "whose: an address family, or prefixes; the longest that covers a destination counts",
        required=True,
    ),
    _IN,
    ClauseRule("set", ("set initcwnd N segments",), "the window of a new connection", required=True),
)

_GUARD = (
    ClauseRule("watch", ("watch APPLY",), "the rule that is stopped", required=True),
    ClauseRule(
        "abort",
        ("abort when METRIC pN < N% of hold_out",),
        "stops the rule in a POP where a percentile of the treated prefixes is beyond a share of the held-out ones'",
        repeats=True,
    ),
    ClauseRule(
        "require",
        ("require prefixes >= N per arm",),
        "prefixes that each arm needs before `abort` is judged; 1 without the clause",
    ),
    ClauseRule(
        "limit",
        ("limit churn <= N% per run",),
        "a run in which a larger share of a POP's prefixes would leave changes nothing there",
    ),
    ClauseRule(
        "on_failure",
        ("on_failure freeze", "on_failure release for DURATION"),
        "after an abort: keep what is selected as it is, or release all and admit none for so long",
    ),
)

_EXPERIMENT = (
    ClauseRule("on", ("on APPLY",), "the rule that is tried", required=True),
    ClauseRule(
        "hold_out", ("hold_out N% of hosts",), "share of each POP's hosts that get nothing of the rule"
    ),
    ClauseRule(
        "switchback",
        ("switchback DURATION",),
        "the rule is on and off by turns of this length in each POP, in random order",
    ),
)

_TEST = (
    ClauseRule(
        "given",
        ('given PREFIX in POP membership "1010..." [selected]', 'given telemetry "PATH" [until TIME]'),
        "a prefix's membership by window, or recorded telemetry",
        required=True,
    ),
    ClauseRule(
        "expect",
        ("expect SELECT includes PREFIX [in POP]", "expect SELECT excludes PREFIX [in POP] because REASON"),
        "what the select must say of the prefix, and for an exclusion what it must miss",
        required=True,
        repeats=True,
    ),
)

BLOCKS: Final[dict[str, dict[str, ClauseRule]]] = {
    block: {rule.keyword: rule for rule in rules}
    for block, rules in (
        ("select", _SELECT),
        ("apply", _APPLY),
        ("learn", _LEARN),
        ("initcwnd", _INITCWND),
        ("guard", _GUARD),
        ("experiment", _EXPERIMENT),
        ("test", _TEST),
    )
}
OVERRIDE: Final[dict[str, ClauseRule]] = {rule.keyword: rule for rule in _OVERRIDE}

BLOCK_MEANINGS: Final = {
    "select": "which prefixes count as persistently slow, POP by POP",
    "apply": "what selected prefixes get, where, and within which limits",
    "learn": "how far initial windows that hosts learn may grow (Riptide)",
    "initcwnd": "an initial window as it stands, by prefix or address family",
    "guard": "what stops a rule in a POP",
    "experiment": "control by host or by time, to measure what a rule gains",
    "test": "what the policy must say of given telemetry",
}
