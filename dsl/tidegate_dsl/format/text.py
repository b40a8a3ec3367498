"""A policy in its one canonical layout: only blanks, blank lines and the ends of lines change."""

from tidegate_dsl.diagnostics import Diagnostic, Findings, Source
from tidegate_dsl.syntax import lex, parse_policy

from .columns import write
from .lines import arrange


class FormatError(Exception):
    """A text that is not formatted, because its words or its grammar are not a policy's.

    Args:
        source: the text, to show the diagnostics in.
        diagnostics: what is wrong, in the order of the file.
    """

    def __init__(self, source: Source, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(f"{source.path} is not formatted: it has errors")
        self.source = source
        self.diagnostics = diagnostics


def format_text(text: str, path: str = "policy.tide") -> str:
    """The policy in its canonical layout.

    Comments, numbers and strings stay word for word, and so does what the policy means; a text that is formatted
    already comes back as it is. Names and values are not looked at, so a policy that is refused by the checker
    is formatted too.

    Args:
        text: the policy.
        path: what diagnostics call it.

    Raises:
        FormatError: the text has mistakes of its words or its grammar.
    """
    source, findings = Source(path, text), Findings(path)
    parse_policy(source, findings)
    if findings.items:
        raise FormatError(source, tuple(sorted(findings.items, key=lambda found: found.span.start)))
    return write(arrange(lex(source, findings)))
