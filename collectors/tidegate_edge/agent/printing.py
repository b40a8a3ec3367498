"""What a command prints, and the code that it exits with."""

import errno
import json
import os
import sys

import click

from tidegate_edge.errors import MISSING_PART, Failure

from .protocol import Document


def show(document: Document, lines: list[str], *, as_json: bool) -> None:
    """Print a document, or the same for people.

    Raises:
        Failure: standard output does not take it.
    """
    try:
        _write(json.dumps(document, indent=2) if as_json else "\n".join(lines))
    except OSError as error:
        sys.stdout = None  # else the interpreter tries once more when it ends, and exits 120
        raise Failure(
            f"the report could not be written: {error.strerror}",
            help="the kernel may have been changed all the same; see `tidegate-agent status`",
            exit_code=MISSING_PART,
        ) from error


def tell(failure: Failure) -> None:
    """A failure on standard error, with the way out."""
    click.echo(f"tidegate-agent: {failure.message}", err=True)
    if failure.help:
        click.echo(f"help: {failure.help}", err=True)


def _write(text: str) -> None:
    if sys.stdout is None:  # click then says nothing, and succeeds
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    click.echo(text)
