"""The language of Tidegate's policies: text in, a checked `model.Policy` or diagnostics out.

Start with `check_file`; `render` and `summary` say what it found, `read_fleet` and `read_limits` read what a policy
is checked against, `judge` is the mathematics of `require`. What else others may use stands in the `__init__` of
`vocabulary`, `model`, `diagnostics`, `check`, `format` and `lsp`.
"""

from .check import CheckResult, check_file, check_text, render
from .diagnostics import Diagnostic, InputError, apply_fixes, read_text, summary
from .fleet import Limits, read_fleet, read_limits
from .model import judge
from .syntax import Memory

__all__ = [
    "CheckResult",
    "Diagnostic",
    "InputError",
    "Limits",
    "Memory",
    "apply_fixes",
    "check_file",
    "check_text",
    "judge",
    "read_fleet",
    "read_limits",
    "read_text",
    "render",
    "summary",
]
