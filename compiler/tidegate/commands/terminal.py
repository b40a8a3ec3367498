"""What commands print: errors, JSON, and what is being done. `rich` is loaded only where it is needed."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console


def console() -> "Console":
    """Standard output, as rich knows it."""
    from rich.console import Console  # noqa: PLC0415 - a fifth of a second that `check` does not need

    return Console(highlight=False)


def colored(*, err: bool = False) -> bool:
    """Whether to colour: on a terminal, and not where NO_COLOR is set (no-color.org)."""
    stream = sys.stderr if err else sys.stdout
    return stream.isatty() and not os.environ.get("NO_COLOR")


def failure(message: str, help_text: str | None) -> None:
    """An error in the house's form, on standard error."""
    head = click.style("error:", fg="red", bold=True) if colored(err=True) else "error:"
    click.echo(f"{head} {message}", err=True)
    if help_text:
        click.echo(f"  help: {help_text}", err=True)


def warning(message: str) -> None:
    """What a person should know beside the result, on standard error."""
    head = click.style("warning:", fg="yellow", bold=True) if colored(err=True) else "warning:"
    click.echo(f"{head} {message}", err=True)


def print_json(document: object) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(document, indent=2, sort_keys=True))


@contextmanager
def status(what: str) -> Iterator[Callable[[str], None]]:
    """A line that says what is being done, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415

    with Console(stderr=True, highlight=False).status(what) as shown:
        yield shown.update


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """As `status`, with how far it is."""
    with status(what) as update:
        yield lambda done, total: update(f"{what}: {100 * done // max(total, 1)}%")
