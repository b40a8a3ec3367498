"""`tidegate fmt`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from tidegate_dsl import InputError
from tidegate_dsl.diagnostics import render
from tidegate_dsl.format import FormatError, format_text

from tidegate.commands.options import JSON
from tidegate.commands.terminal import colored, failure, print_json
from tidegate.errors import ANSWER_IS_NO, BAD_INPUT, Failure
from tidegate.rewrite import rewrite
from tidegate.sources import STDIN, find_policies, read_policy
from tidegate.unified import for_terminal, unified_diff

_EPILOG: Final = (
    "Exit codes: 0 done, 1 with --check a layout would change, 2 wrong usage, or a file that was not formatted "
    "because it can not be read or written or has errors in its grammar; the other files are formatted all the same."
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file.

    Attributes:
        path: the file as it was given; what standard input is called.
        before: its text, or None where it was not formatted.
        after: its text in the canonical layout.
        refusal: why it was not formatted.
    """

    path: str
    before: str | None = None
    after: str = ""
    refusal: FormatError | InputError | Failure | None = None

    @property
    def changed(self) -> bool:
        """Whether its layout was not the canonical one."""
        return self.before is not None and self.before != self.after

    def difference(self) -> str:
        """The change as a unified diff."""
        return unified_diff(self.path, self.before, self.after) if self.before is not None else ""


@click.command("fmt", epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Change nothing; name what would change and exit 1.")
@click.option("--diff", is_flag=True, help="Change nothing; print what would change as a unified diff.")
@click.option(
    "--stdin-filename", "stdin_name", type=click.Path(path_type=Path), help="What standard input is called."
)
@JSON
def command(files: tuple[Path, ...], check: bool, diff: bool, stdin_name: Path | None, as_json: bool) -> None:
    """Write policies in their one canonical layout, and print the names of those that changed.

    FILES are policies, directories (every .tide file below), or - alone: standard input is written to standard
    output. What a policy means and every comment stay as they are.

    \b
    tidegate fmt dsl/examples
    tidegate fmt --check --diff dsl/examples/edge.tide
    tidegate fmt - < dsl/examples/edge.tide
    """
    if STDIN in files and len(files) > 1:
        raise click.UsageError("standard input is formatted alone: give `-` and nothing else")
    pipe = STDIN in files and not (check or diff)
    if pipe and as_json:
        raise click.UsageError("`-` prints the policy: give --check or --diff with --json")
    outcomes = [_format(path, stdin_name, write=not (check or diff)) for path in find_policies(files)]
    code = _exit_code(outcomes, check=check)
    if as_json:
        print_json({"ok": code == 0, "files": [_document(outcome, diff=diff) for outcome in outcomes]})
        sys.exit(code)
    for outcome in outcomes:
        if outcome.refusal:
            _say_why_not(outcome.refusal)
    if pipe:
        _echo("".join(outcome.after for outcome in outcomes))
    elif diff:
        _show("".join(outcome.difference() for outcome in outcomes))
    else:
        _echo("".join(f"{outcome.path}\n" for outcome in outcomes if outcome.changed))
    sys.exit(code)


def _format(path: Path, stdin_name: Path | None, *, write: bool) -> Outcome:
    name = str(path)
    try:
        written = read_policy(path, stdin_name)
        name = written.name
        after = format_text(written.text, name)
        if write and written.file and after != written.text:
            rewrite(written.file, after)
    except (FormatError, InputError, Failure) as refusal:
        return Outcome(name, refusal=refusal)
    return Outcome(name, written.text, after)


def _exit_code(outcomes: list[Outcome], *, check: bool) -> int:
    if any(outcome.refusal for outcome in outcomes):
        return BAD_INPUT
    return ANSWER_IS_NO if check and any(outcome.changed for outcome in outcomes) else 0


def _document(outcome: Outcome, *, diff: bool) -> dict[str, object]:
    refusal = outcome.refusal
    found = (
        [each.to_json(refusal.source) for each in refusal.diagnostics]
        if isinstance(refusal, FormatError)
        else []
    )
    return {
        "path": outcome.path,
        "changed": outcome.changed,
        "error": str(refusal) if refusal else None,
        "diagnostics": found,
        **({"diff": outcome.difference()} if diff else {}),
    }


def _say_why_not(refusal: FormatError | InputError | Failure) -> None:
    if isinstance(refusal, FormatError):
        click.echo(render(refusal.source, refusal.diagnostics, color=colored(err=True)) + "\n", err=True)
        failure(str(refusal), None)
    else:
        failure(refusal.message, refusal.help)


def _show(diff: str) -> None:
    _echo(for_terminal(diff, color=colored()) if sys.stdout.isatty() else diff)


def _echo(text: str) -> None:
    """Print policies in UTF-8 whatever the locale, and a file's name even if it is none."""
    click.echo(text.encode("utf-8", "surrogateescape"), nl=False)
