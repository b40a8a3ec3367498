"""What names mean: the fleet's POPs and groups, and the file's own selects."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from tidegate_dsl.diagnostics import Excerpt, Findings, Fix, Span, advice, replacement, spelling
from tidegate_dsl.fleet import Limits
from tidegate_dsl.model import Apply, Clause, Fleet, Select
from tidegate_dsl.syntax import tree
from tidegate_dsl.vocabulary import NAME

from .repeats import check_repeats

B = TypeVar("B", Select, Apply)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a block is checked against.

    Attributes:
        text: what spans are of: the file, or what of it stands from a block on.
        fleet: None where the inventory is reported as unreadable: then no POP is reported as unknown.
        limits: the limits file.
        selects: every select of the file by name; None for one that was reported.
        applies: likewise every apply.
        findings: where mistakes go.
    """

    text: Excerpt
    fleet: Fleet | None
    limits: Limits
    selects: Mapping[str, Select | None]
    applies: Mapping[str, Apply | None]
    findings: Findings

    def of(self, block: tree.Block) -> "Scope":
        """The same for one block, whose spans count lines from its own."""
        text, findings = replace(self.text, above=block.above), self.findings.below(block.above)
        return replace(self, text=text, findings=findings)

    def clause(self, span: Span) -> Clause:
        """A clause's line and words, for the plan's `because`; the line counts as the span's does."""
        return Clause(span.line, self.text.words(span))

    def select(self, name: tree.Name) -> Select | None:
        """The select of this name, or None where it or the name is reported."""
        return self._named("select", "N105", self.selects, name)

    def apply(self, name: tree.Name) -> Apply | None:
        """The apply rule of this name, or None where it or the name is reported."""
        return self._named("apply", "N110", self.applies, name)

    def _named(self, kind: str, code: str, blocks: Mapping[str, B | None], name: tree.Name) -> B | None:
        if name.text in blocks:
            return blocks[name.text]
        way_out = f"write `{kind} {name.text} {{ … }}`"
        if blocks:
            way_out = advice(name.text, blocks, what="this file has")
        fix = spelling(name.span, name.text, filter(NAME.fullmatch, blocks))
        self.findings.error(code, f"there is no {kind} `{name.text}`", name.span, help=way_out, fix=fix)
        return None

    def pop(self, name: tree.Name) -> str | None:
        """The POP of this name, or None where it is reported or the fleet is not known."""
        if self.fleet is None:
            return None
        pops = [pop.name for pop in self.fleet.pops]
        if name.text in pops:
            return name.text
        groups = {group for pop in self.fleet.pops for group in pop.groups}
        if name.text in groups:
            self.findings.error(
                "N104",
                f"`{name.text}` is a group, one POP must stand here",
                name.span,
                help=f"its POPs are {', '.join(f'`{pop}`' for pop in self._members(name.text))}",
            )
        else:
            self.findings.error(
                "N104",
                f"the inventory has no POP `{name.text}`",
                name.span,
                help=advice(name.text, pops, what="it has"),
                fix=spelling(name.span, name.text, pops),
            )
        return None

    def pops(self, clause: tree.In) -> tuple[str, ...] | None:
        """The POPs of an `in` clause, sorted, or None where something of it is reported or the fleet is not known."""
        if self.fleet is None:
            return None
        included = [self._resolve(name) for name in clause.included]
        excepted = [self._resolve(name) for name in clause.excepted]
        if None in included or None in excepted:
            return None
        for names in (clause.included, clause.excepted):
            if check_repeats(names, [name.text for name in names], self.findings):
                return None
        among = set().union(*(members for members in included if members is not None))
        for name, members in zip(clause.excepted, excepted, strict=True):
            if members is not None and not members & among:
                self.findings.error(
                    "C107",
                    f"`{name.text}` is not in the set that it is taken from",
                    name.span,
                    help="remove it, or name the set that holds it",
                    fix=_without(clause, name),
                )
                return None
        left = among.difference(*(members for members in excepted if members is not None))
        if not left:
            self.findings.error(
                "C106", "no POP is left in this set", clause.span, help="name a POP that is not excepted"
            )
            return None
        return tuple(sorted(left))

    def _resolve(self, name: tree.Name) -> frozenset[str] | None:
        """The POPs that `all`, a group's name or a POP's name stands for."""
        members = self._members(name.text)
        if members:
            return frozenset(members)
        assert self.fleet is not None  # noqa: S101 - `pops` looked
        known = {word for pop in self.fleet.pops for word in (pop.name, *pop.groups)}
        self.findings.error(
            "N104",
            f"the inventory has no POP or group `{name.text}`",
            name.span,
            help=advice(name.text, ["all", *sorted(known)], what="it has"),
            fix=spelling(name.span, name.text, ["all", *sorted(known)]),
        )
        return None

    def _members(self, word: str) -> list[str]:
        pops = self.fleet.pops if self.fleet else ()
        return [pop.name for pop in pops if word in ("all", pop.name) or word in pop.groups]


def _without(clause: tree.In, exception: tree.Name) -> Fix:
    """The fix that takes an exception away, with the comma or the `except` that leads to it."""
    names = clause.excepted
    index = names.index(exception)
    if index == 0 and len(names) > 1:
        span = exception.span.to(names[1].span.start)
    else:
        before = names[index - 1].span if index else clause.included[-1].span
        span = before.end.to(exception.span)
    return replacement(span, "")
