"""What people read: plans, verdicts and explanations as text. JSON is printed by the commands themselves."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.emit import Written
from tidegate.explain import Explanation, say
from tidegate.guard import Verdict
from tidegate.plan import Plan

_COUNTED = ("added", "kept", "held")


def plan_by_pop(console: Console, plan: Plan) -> None:
    """One line a POP, counts first; then who enters and leaves, and the clause that is the reason."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("POP")
    for name in ("observed", "new", "kept", "held", "released", "deferred", "held out", "claims"):
        table.add_column(name, justify="right")
    for pop, body in plan.pops.items():
        actions = [d["action"] for d in body["decisions"]]
        table.add_row(
            pop,
            str(body["observed_prefixes"]),
            *(str(actions.count(action)) for action in _COUNTED),
            str(len(body["released"])),
            str(len(body["deferred"])),
            str(sum(d["arm"] == "held_out" for d in body["decisions"])),
            str(len(body["claims"])),
        )
    console.print(table)
    if plan.changes_nothing:
        console.print(f"\nNothing changes: generation {plan.generation} stays.")
        console.print("Apply it all the same: hold times count from the last applied plan.")
        return
    console.print(f"\nGeneration {plan.generation}, watermark {plan.document['watermark']}")
    for pop, body in plan.pops.items():
        for d in body["decisions"]:
            if d["action"] == "added":
                held = "  held out" if d["arm"] == "held_out" else ""
                _line(console, "green", f"  + {pop} {d['prefix']}  {d['because']}{held}")
        for r in body["released"]:
            _line(console, "red", f"  - {pop} {r['prefix']}  {r['because']}")


def verdict(console: Console, found: Verdict) -> None:
    """OPA's answer, and each denial."""
    if found.allow:
        _line(console, "green", "Open Policy Agent allows it.")
        return
    _line(console, "red", f"Open Policy Agent denies it ({len(found.denials)}):")
    for denial in found.denials:
        place = " ".join(part for part in (denial.pop, denial.prefix) if part)
        _line(console, "", f"  {denial.code}: {place + ': ' if place else ''}{denial.message}")


def files(console: Console, written: Iterable[Written]) -> None:
    """The variables' files."""
    for file in written:
        _line(console, "", f"  {file.action:<9} {file.path}")


def explanation(console: Console, found: Explanation, decision: str) -> None:
    """Timeline, rate against threshold, each clause passed or failed, and what the plan made of it."""
    _line(console, "bold", f"{found.prefix} at {found.pop}, by {found.select}: {decision}")
    if not found.windows:
        _line(console, "", "  not observed in the lookback")
        return
    last = found.windows[-1]
    _line(console, "", f"  timeline   {found.timeline}  (1 slow, 0 not slow, . not observed; oldest first)")
    rate, threshold = say(found.metric, last.value), say(found.metric, last.threshold)
    _line(console, "", f"  last       {found.metric} {rate}, threshold {threshold}, {last.samples} samples")
    width = max(len(judged.clause.text) for judged in found.clauses)
    for judged in found.clauses:
        mark, style = ("pass", "green") if judged.passed else ("FAIL", "red")
        text = f"  {mark}       {judged.clause.text:<{width}}  {judged.found}  (line {judged.clause.line})"
        _line(console, style, text)


def _line(console: Console, style: str, text: str) -> None:
    console.print(Text(text, style=style), soft_wrap=True)


def names(values: Sequence[str]) -> str:
    """`a`, `b` and `c`."""
    quoted = [f"`{value}`" for value in values]
    return " and ".join(filter(None, [", ".join(quoted[:-1]), *quoted[-1:]]))
