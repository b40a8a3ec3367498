"""Whether a block has every clause it needs, and none twice."""

from collections.abc import Mapping

from tidegate_dsl.diagnostics import Edit, Findings, Fix, Source, Span
from tidegate_dsl.syntax import tree
from tidegate_dsl.vocabulary import ClauseRule


def check_structure(
    what: str,
    header: Span,
    body: tree.Body,
    rules: Mapping[str, ClauseRule],
    source: Source,
    findings: Findings,
) -> None:
    """Report clauses that are missing or stand twice.

    Args:
        what: the block in words, such as `select slow_clients`.
        header: what to underline where a clause is missing.
        body: the block's clauses.
        rules: which clauses the block may and must have.
        source: the file.
        findings: where mistakes go.
    """
    first: dict[str, tree.Clause] = {}
    for clause in body.clauses:
        keyword = clause.key.split()[0]
        if clause.key in first and not rules[keyword].repeats:
            findings.error(
                "P108",
                f"`{clause.key}` stands twice in {what}",
                clause.span,
                notes=(f"first on line {first[clause.key].span.line}",),
                help="keep one of them",
                fix=_removed(first[clause.key], clause, source),
            )
        first.setdefault(clause.key, clause)
    if "" in body.broken:
        return
    for rule in rules.values():
        key = f"{rule.keyword} {rule.subject}".strip()
        if not rule.required or key in first or rule.keyword in body.broken:
            continue
        findings.error(
            "P107",
            f"{what} has no `{key}`",
            header,
            help=f"add `{rule.forms[0]}`",
        )


def _removed(first: tree.Clause, second: tree.Clause, source: Source) -> Fix | None:
    """The fix that takes the second clause away where both say the same; else which one is meant is not known."""
    span = second.span
    if isinstance(second, tree.Override) or source.words(first.span) != source.words(span):
        return None
    line = source.lines[span.line - 1]
    if line.strip() == source.slice(span) and span.line < len(source.lines):  # the line holds nothing else
        span = Span(span.line, 1, len(line) + 2)
    return Fix("remove the second one", (Edit(span, ""),))
