"""What is wrong with a policy and where: its text, places in it, reports with fixes, and how they are shown."""

from .codes import CODES
from .errors import InputError, unreadable
from .fixes import applicable, apply_fixes
from .printed import render, summary
from .report import Diagnostic, Edit, Findings, Fix, replacement
from .sarif import sarif
from .source import Excerpt, Source, Span, read_text
from .suggest import advice, either, listed, nearest, spelling

__all__ = [
    "CODES",
    "Diagnostic",
    "Edit",
    "Excerpt",
    "Findings",
    "Fix",
    "InputError",
    "Source",
    "Span",
    "advice",
    "applicable",
    "apply_fixes",
    "either",
    "listed",
    "nearest",
    "read_text",
    "render",
    "replacement",
    "sarif",
    "spelling",
    "summary",
    "unreadable",
]
