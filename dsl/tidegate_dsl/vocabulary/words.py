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
