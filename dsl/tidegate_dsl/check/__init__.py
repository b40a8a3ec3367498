"""The tree to a checked policy, block by block. Start with `check_file`."""

from .file import CheckResult, check_file, check_text, render
from .policy import check_policy
from .scope import Scope
from .test import check_test

__all__ = [
    "CheckResult",
    "Scope",
    "check_file",
    "check_policy",
    "check_test",
    "check_text",
    "render",
]
