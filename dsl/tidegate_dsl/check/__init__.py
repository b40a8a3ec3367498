"""The tree to a checked policy, block by block. Start with `check_file`."""

from .file import CheckResult, check_file, check_text, render

__all__ = [
    "CheckResult",
    "check_file",
    "check_text",
    "render",
]
