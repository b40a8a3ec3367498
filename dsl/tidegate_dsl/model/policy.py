"""A checked policy as a whole."""

from dataclasses import dataclass

from .fleet import Fleet
from .rules import Apply, Experiment, Guard
from .selects import Select
from .tests import PolicyTest
from .windows import Initcwnd, Learn


@dataclass(frozen=True, slots=True)
class Policy:
    """One checked policy file."""

    path: str
    digest: str  # "sha256:" and the hex SHA-256 of the file's bytes
    edition: str
    fleet: Fleet
    inventory: str  # the directory of hosts.yml, resolved against the policy file
    selects: tuple[Select, ...]
    applies: tuple[Apply, ...]
    learns: tuple[Learn, ...]
    initcwnds: tuple[Initcwnd, ...]
    guards: tuple[Guard, ...]
    experiments: tuple[Experiment, ...]
    tests: tuple[PolicyTest, ...]
