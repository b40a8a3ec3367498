"""A syntax tree to a checked policy."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, TypeVar

from tidegate_dsl.analysis import analyse, read_allowances, silence
from tidegate_dsl.diagnostics import Edit, Findings, Fix, InputError, Source, Span, advice
from tidegate_dsl.fleet import Limits, inventory_directory, read_fleet
from tidegate_dsl.model import Apply, Fleet, Policy, Select
from tidegate_dsl.syntax import Memory, find, tree
from tidegate_dsl.vocabulary import BLOCKS, EDITIONS, TOP_LEVEL

from .apply import check_apply
from .experiment import check_experiment
from .guard import check_guard
from .initcwnd import check_initcwnd, check_one_window_per_prefix
from .learn import check_learn, check_one_learn_per_pop
from .pairs import check_one_experiment_per_pop, check_one_guard_per_rule
from .scope import Scope
from .select import check_select
from .structure import check_structure
from .test import check_test

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_START: Final = Span(1, 1, 1)

T = TypeVar("T")


def check_policy(
    file: tree.File,
    source: Source,
    *,
    directory: Path,
    inventory: Path | None,
    limits: Limits,
    findings: Findings,
    fleets: Callable[[Path], Fleet] = read_fleet,
    memory: Memory | None = None,
) -> Policy | None:
    """The policy; None where an error is reported, by this step or one before it.

    Args:
        file: the syntax tree.
        source: its text.
        directory: what the inventory's path is relative to.
        inventory: read instead of the one that the file names.
        limits: what a policy may not pass.
        findings: where mistakes go.
        fleets: reads an inventory; one who checks again and again gives a reader that remembers.
        memory: what is known of blocks.

    Raises:
        InputError: `inventory` is given and can not be read.
    """
    edition = _edition(file, source, inventory_needed=inventory is None, findings=findings)
    found = _inventory(file, directory, inventory, fleets, findings)
    fleet = found[1] if found else None
    blocks = {kind: [block for block in file.blocks if block.kind == kind] for kind in BLOCKS}
    for of_a_kind in blocks.values():
        _check_names(of_a_kind, findings)

    selects: dict[str, Select | None] = dict.fromkeys(file.skipped)
    applies: dict[str, Apply | None] = dict.fromkeys(file.skipped)
    scope = Scope(source, fleet, limits, selects, applies, findings)
    known = memory or Memory()

    def each(
        kind: str, step: Callable[[tree.Block, Scope], T | None]
    ) -> Iterator[tuple[tree.Block, T | None]]:
        for block in blocks[kind]:
            about = (fleet, limits, directory, *_named(block, scope))
            yield block, known.recall("check", block, about, findings, partial(_checked, step, block, scope))

    for block, made in each("select", check_select):
        # A test of a select that lacks a clause would fail for the mistake that is reported already, and a guard of a
        # rule that lacks its hold-out likewise.
        selects.setdefault(block.name.text, None if block.body.broken else made)
    for block, rule in each("apply", check_apply):
        applies.setdefault(block.name.text, None if block.body.broken else rule)
    learns = _whole(each("learn", check_learn))
    check_one_learn_per_pop(learns, scope)
    initcwnds = _whole(each("initcwnd", check_initcwnd))
    check_one_window_per_prefix(initcwnds, scope)
    guards = _whole(each("guard", check_guard))
    check_one_guard_per_rule(guards, scope)
    experiments = _whole(each("experiment", check_experiment))
    check_one_experiment_per_pop(experiments, scope)
    tests = _whole(each("test", partial(check_test, directory)))
    allowances = read_allowances(file.comments, source, findings)
    if edition is None or found is None or _refused(findings):
        return None
    policy = Policy(
        path=source.path,
        digest=f"sha256:{sha256(source.data).hexdigest()}",
        edition=edition,
        fleet=found[1],
        inventory=str(found[0]),
        selects=tuple(select for select in selects.values() if select is not None),
        applies=tuple(apply for apply in applies.values() if apply is not None),
        learns=tuple(learn for _, learn in learns),
        initcwnds=tuple(initcwnd for _, initcwnd in initcwnds),
        guards=tuple(guard for _, guard in guards),
        experiments=tuple(experiment for _, experiment in experiments),
        tests=tuple(test for _, test in tests),
    )
    analyse(file, policy, source, findings, known)
    silence(allowances, findings)
    return None if _refused(findings) else policy


def _refused(findings: Findings) -> bool:
    return any(found.severity == "error" for found in findings.items)


def _checked(step: Callable[[tree.Block, Scope], T], block: tree.Block, scope: Scope) -> T:
    """What a step makes of a block, whose clauses are counted first."""
    shown = f'test "{block.name.text}"' if block.kind == "test" else f"{block.kind} {block.name.text}"
    check_structure(shown, block.span, block.body, BLOCKS[block.kind], scope.source, scope.findings)
    return step(block, scope)


def _named(block: tree.Block, scope: Scope) -> Iterator[Select | Apply | Literal[False] | None]:
    """The selects and rules that a block names: None for one that is reported, False where there is none."""
    for clause in block.body.clauses if block.kind != "select" else ():
        if isinstance(clause, tree.To | tree.Expect):
            yield scope.selects.get(clause.select.text, False)
        elif isinstance(clause, tree.RuleOf):
            yield scope.applies.get(clause.apply.text, False)


def _whole(blocks: Iterable[tuple[tree.Block, T | None]]) -> list[tuple[tree.Block, T]]:
    """The blocks of which something could be made."""
    return [(block, made) for block, made in blocks if made is not None]


def _edition(file: tree.File, source: Source, *, inventory_needed: bool, findings: Findings) -> str | None:
    """The edition; None where it is reported."""
    rules = {
        keyword: rule for keyword, rule in TOP_LEVEL.items() if inventory_needed or keyword != "inventory"
    }
    spans = [clause.span for clause in file.head.clauses] + [block.span for block in file.blocks]
    start = min(spans, default=_START)
    present = tuple(clause for clause in file.head.clauses if clause.key in rules)
    check_structure("the file", start, tree.Body(present, file.head.broken), rules, source, findings)
    edition = find(file.head.clauses, tree.Edition)
    if edition is None:
        return None
    if start < edition.span:
        findings.error(
            "P109",
            "the edition stands behind what it gives a meaning to",
            edition.span,
            help="make it the first clause of the file",
            fix=_moved(edition, start, source),
        )
    name = edition.edition
    if name.text not in EDITIONS:
        way_out = advice(name.text, EDITIONS, what="this version knows")
        findings.error("N101", f"there is no edition `{name.text}`", name.span, help=way_out)
    return name.text


def _moved(clause: tree.Clause, first: Span, source: Source) -> Fix:
    """The fix that takes a clause from its place and writes it on a line of its own before the first."""
    return Fix(
        f"move `{source.words(clause.span)}` up",
        (Edit(first.start, f"{source.slice(clause.span)}\n"), Edit(clause.span, "")),
    )


def _inventory(
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
            help=error.help or "the path is relative to the policy file",
        )
        return None
    return inventory_directory(path), fleet


def _check_names(blocks: list[tree.Block], findings: Findings) -> None:
    """Names of one kind of block are of the right form and taken once."""
    lines: dict[str, int] = {}
    for block in blocks:
        name = block.name
        if block.kind != "test" and not _NAME.fullmatch(name.text):
            findings.error(
                "N109",
                f"`{name.text}` is no name",
                name.span,
                help="a name is a lower-case letter, then up to 62 letters, digits and `_`",
            )
        if name.text in lines:
            findings.error(
                "N107",
                f"there is a {block.kind} `{name.text}` already",
                name.span,
                notes=(f"first on line {lines[name.text]}",),
                help="choose another name",
            )
        lines.setdefault(name.text, name.span.line)
