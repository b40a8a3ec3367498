"""Words that stand within clauses."""

import re
from typing import Final

NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
NAME_IN_WORDS: Final = "a name is a lower-case letter, then up to 62 letters, digits and `_`"
EDITIONS: Final = ("2026.1",)
TRAFFIC_CLASSES: Final = ("client", "pop_to_pop", "intra_pop", "origin")
COMPARISONS: Final = ("<", "<=", ">", ">=")
SIDES: Final = ("bottom", "top")
REQUIREMENTS: Final = {"duty_cycle": ">=", "flap_rate": "<=", "windows": ">=", "samples": ">="}

# The comparison of a requirement's `leave`.
LEAVE: Final = {"duty_cycle": "<", "flap_rate": ">", "windows": "<"}
# In the order in which they are looked at and reported.
REASONS: Final = ("windows", "duty_cycle", "flap_rate")
VERDICTS: Final = ("includes", "excludes")
FAMILIES: Final = {"ipv4": "0.0.0.0/0", "ipv6": "::/0"}
DIRECTIONS: Final = ("peer_pops", "origins")
WINDOWS: Final = ("initcwnd", "initrwnd")
FAILURES: Final = ("freeze", "release")
RESERVED_NAMES: Final = ("all", "except", "membership")  # words that stand where a POP or group may

# What words within clauses say; the first word of a clause has its meaning in `blocks`.
WORD_MEANINGS: Final = {
    "client": "all traffic that is none of the other classes",
    "pop_to_pop": "traffic with another POP's own prefixes",
    "intra_pop": "traffic with this POP's own prefixes, loopback or link-local addresses",
    "origin": "traffic with the inventory's origins",
    "bottom": "the prefixes with the smallest values of the window",
    "top": "the prefixes with the largest values of the window",
    "duty_cycle": "windows in which the prefix is a member, of all windows of the lookback",
    "flap_rate": "pairs of adjacent observed windows of which one is a member's and one is not, of all such pairs",
    "windows": "windows of the lookback in which the prefix is observed",
    "samples": "samples of a prefix that pass `from`: with fewer in a window it is not observed there",
    "leave": "the bound that counts for a prefix that is selected already",
    "peer_pops": "own prefixes of the inventory's other POPs",
    "origins": "the inventory's origins",
    "initcwnd": "initial congestion window: segments that a connection may send at first",
    "initrwnd": "initial receive window: segments that the other end may send at first",
    "freeze": "the rule keeps what it has in this POP; nobody enters or leaves",
    "release": "the rule gives up all that it has in this POP, and admits nobody for the time given",
    "includes": "the prefix qualifies",
    "excludes": "the prefix does not qualify, for the reason named",
    "selected": "the prefix is selected already: the bounds of `leave` count",
}
