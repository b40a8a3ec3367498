"""Who enters a POP's selection and who leaves it, each with the clause that is the reason."""

from collections.abc import Iterator

from tidegate.plan import Plan

SHOWN = 20  # of those who enter, and of those who leave, in one POP


def changes(plan: Plan, pop: str, *, limit: int | None) -> Iterator[tuple[str, str]]:
    """(style, line) of each prefix that enters, then of each that leaves; None as `limit` shows all."""
    body = plan.pops[pop]
    entering = [
        f"+ {pop} {d['prefix']}  {d['because']}{'  held out' if d['arm'] == 'held_out' else ''}"
        for d in body["decisions"]
        if d["action"] == "added"
    ]
    leaving = [f"- {pop} {r['prefix']}  {r['because']}" for r in body["released"]]
    yield from _cut("green", entering, limit)
    yield from _cut("red", leaving, limit)


def _cut(style: str, lines: list[str], limit: int | None) -> Iterator[tuple[str, str]]:
    yield from ((style, line) for line in lines[:limit])
    if limit is not None and len(lines) > limit:
        yield style, f"  … and {len(lines) - limit} more; see the saved plan, or ask with --all"
