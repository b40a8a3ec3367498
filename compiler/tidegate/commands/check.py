"""`tidegate check`."""

import gc
import json
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

import click
from tidegate_dsl import CheckResult, Limits, check_text, read_limits, render, summary
from tidegate_dsl.diagnostics import CODES, advice, sarif

from tidegate.commands.options import LIMITS
from tidegate.commands.policies import limits_path, read_each
from tidegate.commands.terminal import colored, console, print_json
from tidegate.errors import ANSWER_IS_NO, BAD_INPUT, Failure
from tidegate.sources import STDIN, Written, find_policies, read_policy

Format = Literal["text", "json", "sarif"]
_RECORDS: Final = (
    100_000  # a check makes so many in 2,000 lines, and no cycle: looking for some is an eighth of it
)
_EPILOG: Final = (
    "Exit codes: 0 no errors, 1 errors (with --strict: or warnings), 2 wrong usage, or input that cannot be read: "
    "the other files are checked all the same. "
    "Diagnostics go to standard output. docs/check.md describes every format."
)


@dataclass(frozen=True, slots=True)
class Options:
    """How to check and how to say what was found."""

    limits: Limits
    inventory: Path | None
    form: Format
    strict: bool
    quiet: bool

    def check(self, written: Written) -> CheckResult:
        """Check one policy."""
        return check_text(
            written.text,
            written.name,
            limits=self.limits,
            inventory=self.inventory,
            directory=written.directory,
        )

    def exit_code(self, results: list[CheckResult]) -> int:
        """No where an error was found, or a warning that counts."""
        fails = any(each.policy is None or (self.strict and each.diagnostics) for each in results)
        return ANSWER_IS_NO if fails else 0


@click.command("check", epilog=_EPILOG)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--inventory", type=click.Path(path_type=Path), help="Use this inventory instead of the policy's."
)
@LIMITS
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="How to print what was found.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--strict", is_flag=True, help="Fail for warnings too.")
@click.option("--quiet", is_flag=True, help="Print diagnostics only, no summary.")
@click.option("--fix", "with_fixes", is_flag=True, help="Make every fix that has one right form.")
@click.option("--diff", "only_show", is_flag=True, help="With --fix: show the changes, write nothing.")
@click.option(
    "--stdin-filename",
    "stdin_name",
    type=click.Path(path_type=Path),
    help="What standard input is called; its directory is where the policy's paths start.",
)
@click.option("--explain", "code", metavar="CODE", help="Print the page of a code, such as C101, and stop.")
def command(
    files: tuple[Path, ...],
    inventory: Path | None,
    limits: Path | None,
    form: Format,
    as_json: bool,
    strict: bool,
    quiet: bool,
    with_fixes: bool,
    only_show: bool,
    stdin_name: Path | None,
    code: str | None,
) -> None:
    """Check policies: names, units, ranges, contradictions and their own tests.

    FILES are policies, directories (every .tide file below) or - for standard input.

    \b
    tidegate check dsl/examples/edge.tide
    tidegate check --fix --diff dsl/examples
    tidegate check --format sarif - < dsl/examples/edge.tide
    tidegate check --explain C101
    """
    if code is not None:
        _explain(code)
        return
    form = "json" if as_json else form
    _refuse_what_does_not_go_together(files, form, with_fixes=with_fixes, only_show=only_show)
    gc.set_threshold(_RECORDS)
    options = Options(read_limits(limits_path(limits)), inventory, form, strict, quiet)
    found = find_policies(files)
    written = read_each(found, partial(read_policy, stdin_name=stdin_name))
    made: list[dict[str, object]] = []
    if only_show:
        results = _show_fixes(written, options)
    elif with_fixes:
        results, made = _fix(written, options)
    else:
        results = [options.check(each) for each in written]
    answer = BAD_INPUT if len(written) < len(found) else options.exit_code(results)
    if not only_show:
        _print(results, made, options, ok=answer == 0)
    sys.exit(answer)


def _refuse_what_does_not_go_together(
    files: tuple[Path, ...], form: Format, *, with_fixes: bool, only_show: bool
) -> None:
    if not files:
        raise click.UsageError("give policies, directories, or - for standard input")
    if files.count(STDIN) > 1:
        raise click.UsageError("standard input can be read once")
    if only_show and not with_fixes:
        raise click.UsageError("--diff shows what --fix would change: give both")
    if only_show and form != "text":
        raise click.UsageError(
            f"--diff shows a difference, not {form}: the fixes are in what a check alone prints"
        )
    if STDIN in files and with_fixes and not only_show:
        raise click.UsageError("standard input can not be rewritten; --fix --diff shows the changes")


def _show_fixes(written: list[Written], options: Options) -> list[CheckResult]:
    """Show every fix as a difference; what a check says of the files as they are."""
    from tidegate.fixing import fix  # noqa: PLC0415 - a check alone needs none of these
    from tidegate.unified import for_terminal, unified_diff  # noqa: PLC0415

    for each in written:
        diff = unified_diff(each.name, each.text, fix(each, options.check).text)
        click.echo(for_terminal(diff, color=colored()) if sys.stdout.isatty() else diff, nl=False)
    return [options.check(each) for each in written]


def _fix(written: list[Written], options: Options) -> tuple[list[CheckResult], list[dict[str, object]]]:
    """Write every fix; what a check says of the files now, and what was done."""
    from tidegate.fixing import fix  # noqa: PLC0415 - as above
    from tidegate.rewrite import rewrite  # noqa: PLC0415

    fixed = [fix(each, options.check) for each in written]
    for each in fixed:
        if each.made and each.before.file:
            rewrite(each.before.file, each.text)
    done: list[dict[str, object]] = [
        {"path": made.path, "line": made.span.line, "code": made.code, "title": made.fix.title}
        for each in fixed
        for made in each.made
        if made.fix
    ]
    return [each.result for each in fixed], done


def _print(results: list[CheckResult], fixed: list[dict[str, object]], options: Options, *, ok: bool) -> None:
    if options.form == "json":
        found = [each.to_json(result.source) for result in results for each in result.diagnostics]
        print_json({"ok": ok, "files": len(results), "diagnostics": found, "fixed": fixed})
        return
    if options.form == "sarif":
        _print_sarif(results)
        return
    for made in fixed:
        click.echo(f"{made['path']}:{made['line']}: fixed {made['code']}: {made['title']}")
    for result in results:
        if result.diagnostics:
            click.echo(render(result, color=colored()) + ("" if options.quiet else "\n"))
    if not options.quiet:
        click.echo(summary((result.source.path, result.diagnostics) for result in results))


def _print_sarif(results: list[CheckResult]) -> None:
    from importlib.metadata import version  # noqa: PLC0415 - as slow as a check

    found = [(result.source, result.diagnostics, result.silenced) for result in results]
    # The order of keys is the specification's, which people read.
    click.echo(json.dumps(sarif(found, version=version("tidegate"), explain=_page), indent=2))


def _explain(code: str) -> None:
    """Print a code's page: as rich text on a terminal, else as it is."""
    known = code.upper()
    if known not in CODES:
        raise Failure(f"there is no code `{code}`", help=advice(known, CODES, what="codes are"))
    text = _page(known)
    if not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    from rich.markdown import Markdown  # noqa: PLC0415 - only for people

    console().print(Markdown(text))


def _page(code: str) -> str:
    from importlib import resources  # noqa: PLC0415 - a check that only checks is faster without it

    return (resources.files("tidegate") / "pages" / f"{code}.md").read_text(encoding="utf-8")
