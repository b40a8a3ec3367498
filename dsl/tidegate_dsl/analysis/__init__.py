"""What a policy that is right in every part says of itself as a whole: contradictions, dead rules, idle clauses.

All by interval and set algebra over the checked policy, about linear in the number of blocks.
"""

from collections.abc import Sequence
from typing import TypeVar

from tidegate_dsl.diagnostics import Findings, Source
from tidegate_dsl.model import Policy
from tidegate_dsl.syntax import Memory, tree

from .allow import read_allowances, silence
from .overlap import check_overlaps
from .rules import check_rules
from .selects import check_selects
from .trials import check_experiments, check_guards
from .windows import check_learns

__all__ = ["analyse", "read_allowances", "silence"]

T = TypeVar("T")


def analyse(file: tree.File, policy: Policy, source: Source, findings: Findings, memory: Memory) -> None:
    """Report contradictions as errors, and as warnings what is allowed and probably not meant.

    Args:
        file: the tree that the policy was made of.
        policy: the policy; every block of the tree is in it, in the same order.
        source: its text.
        findings: where reports go.
        memory: what is known of blocks.
    """

    def pairs(kind: str, made: Sequence[T]) -> list[tuple[tree.Block, T]]:
        return list(zip((block for block in file.blocks if block.kind == kind), made, strict=True))

    check_selects(pairs("select", policy.selects), policy, source, findings, memory)
    applies = pairs("apply", policy.applies)
    dead = check_rules(applies, policy, findings)
    check_overlaps(applies, policy, dead, findings)
    check_guards(pairs("guard", policy.guards), policy, dead, findings)
    check_experiments(pairs("experiment", policy.experiments), policy, dead, findings)
    check_learns(pairs("learn", policy.learns), findings)
