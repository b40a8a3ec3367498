"""A policy in its one layout."""

from .text import FormatError, format_text

__all__ = ["FormatError", "format_text"]
