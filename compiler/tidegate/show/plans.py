"""A plan by POP."""

from rich.console import Console
from rich.table import Table

from tidegate.plan import Plan
from tidegate.show.changes import changes
from tidegate.show.lines import line

_COUNTED = ("added", "kept", "held")


def plan_by_pop(console: Console, plan: Plan, *, limit: int | None) -> None:
    """One line a POP, counts first; then who enters and leaves, and the clause that is the reason.

    Args:
        console: where to.
        plan: what to show.
        limit: how many of those who enter and leave are shown of each POP; None: all.
    """
    counts(console, plan, list(plan.pops))
    if plan.changes_nothing:
        console.print(f"\nNothing changes: generation {plan.generation} stays.")
        console.print("Apply it all the same: hold times count from the last applied plan.")
        return
    console.print(f"\nGeneration {plan.generation}, watermark {plan.document['watermark']}")
    for pop in plan.pops:
        for style, text in changes(plan, pop, limit=limit):
            line(console, style, f"  {text}")


def counts(console: Console, plan: Plan, pops: list[str], *, claims: dict[str, str] | None = None) -> None:
    """The table of counts of some POPs; `claims` says in words what becomes of theirs, by POP."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("POP")
    for name in ("observed", "new", "kept", "held", "released", "deferred", "held out", "claims"):
        table.add_column(name, justify="right")
    for pop in pops:
        body = plan.pops[pop]
        actions = [d["action"] for d in body["decisions"]]
        table.add_row(
            pop,
            str(body["observed_prefixes"]),
            *(str(actions.count(action)) for action in _COUNTED),
            str(len(body["released"])),
            str(len(body["deferred"])),
            str(sum(d["arm"] == "held_out" for d in body["decisions"])),
            claims[pop] if claims else str(len(body["claims"])),
        )
    console.print(table)
