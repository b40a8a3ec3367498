"""`# allow CODE, CODE: reason`: warnings that the author knows of."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tidegate_dsl.diagnostics import CODES, Diagnostic, Findings, Source, Span, replacement
from tidegate_dsl.syntax import Comment

_CODE: Final = "[A-Za-z][0-9]{3}"
_MEANT: Final = re.compile(rf"#[ \t]*allow[ \t]+(?={_CODE}(?![A-Za-z0-9_]))")
_WRITTEN: Final = re.compile(rf"({_CODE}(?:[ \t]*,[ \t]*{_CODE})*)[ \t]*:[ \t]*\S")
_UNUSED: Final = "W111"


@dataclass(frozen=True, slots=True)
class Allowance:
    """One code of an `# allow`, and the line whose warnings it silences.

    Attributes:
        code: which warnings.
        span: where the code stands.
        line: the line on which they start.
        comment: the whole comment.
        alone: the comment has no other code.
        unused_is_allowed: the comment allows that it silences nothing.
    """

    code: str
    span: Span
    line: int
    comment: Span
    alone: bool
    unused_is_allowed: bool


def read_allowances(comments: Iterable[Comment], source: Source, findings: Findings) -> tuple[Allowance, ...]:
    """What the comments allow; a comment that is meant to and is not of the form is reported, others say nothing."""
    found: list[Allowance] = []
    columns: dict[int, int] | None = None
    for comment in comments:
        if not (meant := _MEANT.match(comment.text)):
            continue
        columns = columns or {each.span.line: each.span.column for each in comments}
        written = _WRITTEN.match(comment.text, meant.end())
        if not written:
            reason = comment.text.partition(":")[2]
            findings.error(
                "P110",
                f"this `# allow` {'is not of its form' if reason.strip() else 'gives no reason'}",
                comment.span,
                help="write `# allow CODE: reason`, and several codes with `,` between them",
            )
            continue
        codes = list(re.finditer(_CODE, written[1]))
        names = [code[0] for code in codes]
        line = _silenced_line(comment.span, source, columns)
        for code in codes:
            span = _part(comment.span, meant.end() + code.start(), len(code[0]))
            if _may_be_allowed(code[0], span, findings):
                found.append(Allowance(code[0], span, line, comment.span, len(names) == 1, _UNUSED in names))
    return tuple(found)


def silence(allowances: Iterable[Allowance], findings: Findings) -> None:
    """Take away the warnings that are allowed, and warn of an allowance without one."""
    written: dict[tuple[int, str], list[Allowance]] = {}
    for allowance in allowances:
        written.setdefault((allowance.line, allowance.code), []).append(allowance)
    used: set[tuple[int, str]] = set()
    kept: list[Diagnostic] = []
    for found in findings.items:
        place = (found.span.line, found.code)
        if found.severity == "warning" and place in written:
            used.add(place)
            findings.silenced.append(found)
        else:
            kept.append(found)
    findings.items[:] = kept
    for place, unused in written.items():
        for allowance in unused:
            if place not in used and not allowance.unused_is_allowed:
                findings.warning(
                    _UNUSED,
                    f"there is no {allowance.code} here to allow",
                    allowance.span,
                    notes=(f"{allowance.code}: {CODES[allowance.code]}",),
                    help=f"remove it; it would silence what starts on line {allowance.line}",
                    fix=replacement(allowance.comment, "") if allowance.alone else None,
                )


def _may_be_allowed(code: str, span: Span, findings: Findings) -> bool:
    """Whether there is such a warning; otherwise it is reported."""
    warnings = [known for known in CODES if known.startswith("W")]
    if code in warnings:
        return True
    if code in CODES:
        findings.error(
            "C130",
            f"{code} is an error, and no error can be allowed",
            span,
            notes=(f"{code}: {CODES[code]}",),
            help="correct it where it is reported",
        )
        return False
    meant = code.upper() if code.upper() in warnings else None
    findings.error(
        "N111",
        f"there is no code `{code}`",
        span,
        help=f"did you mean `{meant}`?" if meant else "write the code as the warning shows it",
        fix=replacement(span, meant) if meant else None,
    )
    return False


def _silenced_line(comment: Span, source: Source, columns: dict[int, int]) -> int:
    """The comment's own line, or where that holds no code the next one that does."""
    for number in range(comment.line, len(source.lines) + 1):
        code = source.lines[number - 1]
        if number in columns:
            code = code[: columns[number] - 1]
        if code.strip("\ufeff \t\r"):
            return number
    return comment.line


def _part(whole: Span, offset: int, length: int) -> Span:
    """A piece of a span, `offset` ASCII characters behind its start."""
    column = whole.column + offset
    return Span(whole.line, column, column + length)
