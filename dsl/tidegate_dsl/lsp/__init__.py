"""The language server: what `editor` answers, over the Language Server Protocol. Needs the extra `editor`."""

from .server import serve

__all__ = ["serve"]
