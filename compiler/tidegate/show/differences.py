"""What a plan changes: the POPs that change, who enters and leaves, and which settings are told otherwise."""

from collections.abc import Iterable

from rich.console import Console

from tidegate.difference import PopDifference
from tidegate.plan import Plan
from tidegate.show.changes import changes
from tidegate.show.lines import line
from tidegate.show.plans import counts


def plan_difference(
    console: Console, plan: Plan, found: Iterable[PopDifference], *, limit: int | None
) -> None:
    """Counts by POP first, then who enters and leaves and why, then settings; POPs without a change are left out."""
    changed = [each for each in found if not each.is_empty]
    against = f"generation {plan.previous_generation}" if plan.previous_generation else "nothing applied yet"
    if not changed:
        console.print(f"Nothing changes against {against}.")
        return
    shown = [each for each in changed if each.pop in plan.pops]
    if shown:
        claims = {
            each.pop: f"{len(plan.pops[each.pop]['claims'])}: +{each.claims_added} -{each.claims_removed}"
            for each in shown
        }
        counts(console, plan, [each.pop for each in shown], claims=claims)
    line(console, "", "")
    line(
        console, "", f"Generation {plan.generation} against {against}, watermark {plan.document['watermark']}"
    )
    for each in changed:
        if each.pop not in plan.pops:
            line(console, "red", f"  - {each.pop} left the inventory, with {each.claims_removed} claims")
            continue
        for style, text in changes(plan, each.pop, limit=limit):
            line(console, style, f"  {text}")
        for setting in each.settings:
            line(
                console,
                "yellow",
                f"  ~ {each.pop} {setting.name} {setting.before} → {setting.after}  ({setting.where})",
            )
