"""What stands above all blocks: the edition, and the inventory that names the fleet."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from tidegate_dsl.diagnostics import Edit, Excerpt, Findings, Fix, InputError, Source, Span, advice
from tidegate_dsl.fleet import inventory_directory, inventory_file
from tidegate_dsl.model import Fleet
from tidegate_dsl.syntax import find, tree
from tidegate_dsl.vocabulary import EDITIONS, TOP_LEVEL

from .structure import check_structure

_START: Final = Span(1, 1, 1)


def check_edition(
    file: tree.File, source: Source, *, inventory_needed: bool, findings: Findings
) -> str | None:
    """The edition; None where it is reported."""
    rules = {
        keyword: rule for keyword, rule in TOP_LEVEL.items() if inventory_needed or keyword != "inventory"
    }
    spans = [clause.span for clause in file.head.clauses] + [
        block.span.below(block.above) for block in file.blocks
    ]
    start = min(spans, default=_START)
    present = tuple(clause for clause in file.head.clauses if clause.key in rules)
    check_structure("the file", start, tree.Body(present, file.head.broken), rules, Excerpt(source), findings)
    edition = find(file.head.clauses, tree.Edition)
    if edition is None:
        return None
    if start < edition.span:
        findings.error(
            "P109",
            "the edition stands behind what it gives a meaning to",
            edition.span,
            help="make it the first clause of the file",
            fix=_moved_up(edition, start, source),
        )
    name = edition.edition
    if name.text not in EDITIONS:
        way_out = advice(name.text, EDITIONS, what="this version knows")
        findings.error("N101", f"there is no edition `{name.text}`", name.span, help=way_out)
    return name.text


def _moved_up(clause: tree.Clause, first: Span, source: Source) -> Fix:
    """The fix that takes a clause from its place and writes it on a line of its own before the first."""
    return Fix(
        f"move `{source.words(clause.span)}` up",
        (Edit(first.start, f"{source.slice(clause.span)}\n"), Edit(clause.span, "")),
    )


def read_inventory(
    file: tree.File,
    directory: Path,
    inventory: Path | None,
    fleets: Callable[[Path], Fleet],
    findings: Findings,
) -> tuple[Path, Fleet] | None:
    """The inventory's directory, and the fleet in it; None where it is not named or reported."""
    if inventory is not None:
        fleet = fleets(inventory)
        return inventory_directory(inventory), fleet
    named = find(file.head.clauses, tree.Inventory)
    if named is None:
        return None
    path = directory / named.path.text
    try:
        fleet = fleets(path)
    except InputError as error:
        findings.error(
            "N108",
            "the inventory can not be read",
            named.path.span,
            notes=(error.message,),
            help=error.help or _way_out(path),
        )
        return None
    return inventory_directory(path), fleet


def _way_out(path: Path) -> str:
    """What to do about an inventory that can not be read: find it, or mend what is in it."""
    try:
        found = inventory_file(path).is_file()
    except InputError:
        found = False
    return "correct it there" if found else "the path is relative to the policy file"
