"""What an experiment's numbers must bear out."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, and whether the numbers of this run bear it out."""

    text: str
    holds: bool
