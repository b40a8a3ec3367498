"""A plan for this host, of as much of its routing table as the plan depends on."""

from collections.abc import Callable, Collection, Iterable
from typing import Final, TypeAlias

from .claims import Wanted
from .kernel import read_routes, read_rule_tables
from .prefix import Key, Prefix
from .route import Route
from .routes import SHADOWS_SHOWN, Plan, plan_routes

# One more than a notice names, so that it knows of more.
ENOUGH: Final = SHADOWS_SHOWN + 1
Read: TypeAlias = Callable[[Collection[Prefix], Collection[Key], int], Iterable[Route]]
"""As `kernel.read_routes`."""


def plan_for_host(wanted: Wanted, read: Read = read_routes) -> Plan:
    """Compare what the kernel holds with what is wanted.

    Where the plan needs the best route of a prefix that the reading was not about, the table is read again: where the
    host has routes of the lowest metric both to a claimed prefix and to its half.

    Raises:
        Failure: the kernel does not answer.
    """
    tables, parts = read_rule_tables(), frozenset[Key]()
    while True:
        plan = plan_routes(read(wanted.settings.keys(), parts, ENOUGH), tables, wanted)
        if plan.parts <= parts:
            return plan
        parts |= plan.parts
