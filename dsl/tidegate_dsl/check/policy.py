"""A syntax tree to a checked policy."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from tidegate_dsl.analysis import analyse, read_allowances, silence
from tidegate_dsl.diagnostics import Excerpt, Findings, Source
from tidegate_dsl.fleet import Limits
from tidegate_dsl.model import Apply, Fleet, Policy, Select, moved
from tidegate_dsl.syntax import Memory, tree
from tidegate_dsl.vocabulary import BLOCKS, NAME, NAME_IN_WORDS

from .apply import check_apply
from .experiment import check_experiment
from .guard import check_guard
from .head import check_edition, read_inventory
from .initcwnd import check_initcwnd, check_one_window_per_prefix
from .learn import check_learn, check_one_learn_per_pop
from .pairs import check_one_experiment_per_pop, check_one_guard_per_rule
from .scope import Scope
from .select import check_select
from .structure import check_structure
from .test import TEST_FAILS, check_test

T = TypeVar("T")


def check_policy(
    file: tree.File,
    source: Source,
    *,
    directory: Path,
    inventory: Path | None,
    limits: Limits,
    findings: Findings,
    fleets: Callable[[Path], Fleet],
    memory: Memory,
) -> Policy | None:
    """The policy; None where an error is reported, by this step or one before it, other than that a test fails.

    Args:
        file: the syntax tree.
        source: its text.
        directory: what the inventory's path is relative to.
        inventory: read instead of the one that the file names.
        limits: what a policy may not pass.
        findings: where mistakes go.
        fleets: reads an inventory.
        memory: what is known of blocks.

    Raises:
        InputError: `inventory` is given and can not be read.
    """
    edition = check_edition(file, source, inventory_needed=inventory is None, findings=findings)
    found = read_inventory(file, directory, inventory, fleets, findings)
    for kind in BLOCKS:
        _check_names(_of_kind(file, kind), findings)
    selects: dict[str, Select | None] = dict.fromkeys(file.skipped)
    applies: dict[str, Apply | None] = dict.fromkeys(file.skipped)
    scope = Scope(Excerpt(source), found[1] if found else None, limits, selects, applies, findings)
    each = _Steps(file, scope, directory, memory).each
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
    if not any(found.code == TEST_FAILS for found in findings.items):
        analyse(file, policy, source, findings, memory)
        silence(allowances, findings)
    return None if _refused(findings) else policy


class _Steps:
    """Checks blocks kind by kind, and recalls what was made of one that is as it was and names only such.

    Args:
        file: the syntax tree.
        scope: what names mean.
        directory: what paths of recordings are relative to.
        memory: what is known of blocks.
    """

    def __init__(self, file: tree.File, scope: Scope, directory: Path, memory: Memory) -> None:
        self._file = file
        self._scope = scope
        self._around = (scope.fleet, scope.limits, directory)
        self._memory = memory
        # What was made of a block as if it stood at the file's start: as long as it is the same, so is what names it.
        self._made: dict[tuple[str, str], object] = {
            (kind, name): None for kind in ("select", "apply") for name in file.skipped
        }

    def each(
        self, kind: str, step: Callable[[tree.Block, Scope], T | None]
    ) -> Iterator[tuple[tree.Block, T | None]]:
        """Each block of a kind and what a step makes of it; blocks come behind those that they name."""
        findings = self._scope.findings
        for block in _of_kind(self._file, kind):
            about = (*self._around, *(self._made.get(named, False) for named in _named(block)))
            check = partial(_checked, step, block, self._scope)
            made = self._memory.recall("check", block, about, findings, check)
            self._made.setdefault((kind, block.name.text), None if block.body.broken else made)
            move = partial(moved, made, block.above)
            yield block, self._memory.recall("move", block, (made, block.above), findings, move)


def _of_kind(file: tree.File, kind: str) -> list[tree.Block]:
    return [block for block in file.blocks if block.kind == kind]


def _refused(findings: Findings) -> bool:
    """Whether there is an error, but for tests that fail."""
    return any(found.severity == "error" and found.code != TEST_FAILS for found in findings.items)


def _checked(step: Callable[[tree.Block, Scope], T], block: tree.Block, scope: Scope) -> T:
    """What a step makes of a block, whose clauses are counted first."""
    shown = f'test "{block.name.text}"' if block.kind == "test" else f"{block.kind} {block.name.text}"
    own = scope.of(block)
    check_structure(shown, block.span, block.body, BLOCKS[block.kind], own.text, own.findings)
    return step(block, own)


def _named(block: tree.Block) -> Iterator[tuple[str, str]]:
    """The selects and rules that a block names, by kind and name."""
    for clause in block.body.clauses if block.kind != "select" else ():
        if isinstance(clause, tree.To | tree.Expect):
            yield "select", clause.select.text
        elif isinstance(clause, tree.RuleOf):
            yield "apply", clause.apply.text


def _whole(blocks: Iterable[tuple[tree.Block, T | None]]) -> list[tuple[tree.Block, T]]:
    """The blocks of which something could be made."""
    return [(block, made) for block, made in blocks if made is not None]


def _check_names(blocks: list[tree.Block], findings: Findings) -> None:
    """Names of one kind of block are of the right form and taken once."""
    lines: dict[str, int] = {}
    for block in blocks:
        name, own = block.name, findings.below(block.above)
        if block.kind != "test" and not NAME.fullmatch(name.text):
            own.error(
                "N109",
                f"`{name.text}` is no name",
                name.span,
                help=NAME_IN_WORDS,
            )
        if name.text in lines:
            own.error(
                "N107",
                f"another {block.kind} is called `{name.text}`",
                name.span,
                notes=(f"first on line {lines[name.text]}",),
                help="choose another name",
            )
        lines.setdefault(name.text, block.above + name.span.line)
