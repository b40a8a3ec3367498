"""The language server: what `editor` answers, over the Language Server Protocol. Needs the extra `editor`."""
