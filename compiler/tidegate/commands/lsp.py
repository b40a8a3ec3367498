"""`tidegate lsp`."""

from pathlib import Path

import click

from tidegate.commands.options import LIMITS
from tidegate.commands.policies import limits_path
from tidegate.errors import MISSING_PART, Failure


@click.command("lsp")
@LIMITS
def command(limits: Path | None) -> None:
    """Serve editors: the language server on standard input and output. An editor starts it; see docs/editor.md.

    \b
    tidegate lsp
    """
    try:
        from tidegate_dsl.lsp import serve  # noqa: PLC0415 - only who edits policies installs it
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise Failure(
            f"the language server needs {error.name}, which is not installed",
            help="install the extra `editor`: pip install 'tidegate[editor]'",
            exit_code=MISSING_PART,
        ) from error
    serve(limits_path(limits))
