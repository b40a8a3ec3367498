"""Policies that a command reads: checked, or refused with their errors."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import click
from tidegate_dsl import InputError, check_file, render
from tidegate_dsl.model import Policy

from tidegate.commands.terminal import colored, failure
from tidegate.errors import ANSWER_IS_NO, BAD_INPUT, Failure

T = TypeVar("T")


def read_policy(path: Path, limits: Path | None) -> Policy:
    """The policy.

    Raises:
        Failure: it has errors, which are printed.
    """
    result = check_file(path, inventory=None, limits=limits_path(limits))
    if result.policy is None:
        click.echo(render(result, color=colored(err=True)), err=True)
        raise Failure(
            f"{path} has errors", help=f"see them with `tidegate check {path}`", exit_code=ANSWER_IS_NO
        )
    return result.policy


def read_each(paths: Iterable[Path], read: Callable[[Path], T]) -> list[T]:
    """What can be read; of the rest it is said why not. Where nothing can, the process ends with `BAD_INPUT`."""
    found = []
    for path in paths:
        try:
            found.append(read(path))
        except InputError as error:
            failure(error.message, error.help)
    if not found:
        sys.exit(BAD_INPUT)
    return found


def limits_path(path: Path | None) -> Path:
    """`path`, or the limits that the guard reads too, named as short as can be."""
    return path or short(Path(__file__).parent.parent / "policies" / "limits.yaml")


def short(path: Path) -> Path:
    """The same file or directory, named from here where it lies below."""
    whole, here = path.resolve(), Path.cwd()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole
