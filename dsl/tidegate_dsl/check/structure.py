"""Whether a block has every clause it needs, and none twice."""

from collections.abc import Mapping

from tidegate_dsl.diagnostics import Edit, Excerpt, Findings, Fix, Span
from tidegate_dsl.syntax import tree
from tidegate_dsl.vocabulary import ClauseRule


def check_structure(
    what: str,
    header: Span,
    body: tree.Body,
    rules: Mapping[str, ClauseRule],
    text: Excerpt,
    findings: Findings,
) -> None:
    """Report clauses that are missing or stand twice.

    Args:
        what: the block in words, such as `select slow_clients`.
        header: what to underline where a clause is missing.
        body: the block's clauses.
        rules: which clauses the block may and must have.
        text: what the spans are of.
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
                notes=(f"first on line {text.line_number(first[clause.key].span)}",),
                help="keep one of them",
                fix=_removed(first[clause.key], clause, text),
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


def _removed(first: tree.Clause, second: tree.Clause, text: Excerpt) -> Fix | None:
    """The fix that takes the second clause away where both say the same; else which one is meant is not known."""
    span = second.span
    if isinstance(second, tree.Override) or text.words(first.span) != text.words(span):
        return None
    line = text.line(span)
    if line.strip() == text.slice(span) and not text.is_last(span):  # the line holds nothing else
        span = Span(span.line, 1, len(line) + 2)
    return Fix("remove the second one", (Edit(span, ""),))
