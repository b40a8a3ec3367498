"""Policies that a command reads: checked, or refused with their errors."""

from pathlib import Path

import click
from tidegate_dsl import check_file, render
from tidegate_dsl.model import Policy

from tidegate.commands.terminal import colored
from tidegate.errors import ANSWER_IS_NO, Failure


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


def limits_path(path: Path | None) -> Path:
    """`path`, or the limits that the guard reads too, named as short as can be."""
    return path or short(Path(__file__).parent.parent / "policies" / "limits.yaml")


def short(path: Path) -> Path:
    """The same file or directory, named from here where it lies below."""
    whole, here = path.resolve(), Path.cwd()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole
