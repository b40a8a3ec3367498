"""`tidegate test`."""

import sys
from functools import partial
from pathlib import Path

import click
from tidegate_dsl import read_limits, render

from tidegate.commands.options import JSON, LIMITS
from tidegate.commands.policies import limits_path, read_each
from tidegate.commands.terminal import colored, print_json, status
from tidegate.errors import ANSWER_IS_NO
from tidegate.files import write_atomically
from tidegate.policytest import report
from tidegate.policytest.coverage import coverage, share, share_in_words
from tidegate.policytest.judge import Tried
from tidegate.policytest.junit import junit_xml
from tidegate.policytest.read import read_tests
from tidegate.policytest.run import FileReport, exit_code, run_tests
from tidegate.sources import find_policies


@click.command(
    "test",
    epilog="Exit codes: 0 every test passes, 1 a test fails, a policy has errors or coverage is too low, 2 wrong"
    " usage, or input that cannot be read: all other files are tested, 3 the"
    " embedded store is missing. docs/test.md has more.",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--filter", "name_contains", default="", metavar="TEXT", help="Only tests whose name contains it."
)
@click.option("--coverage", "with_coverage", is_flag=True, help="Show which clauses the tests decide on.")
@click.option(
    "--min-coverage",
    type=click.IntRange(0, 100),
    help="Fail where fewer percent of the clauses are covered.",
)
@click.option("--require-tests", is_flag=True, help="Fail where there is no test.")
@click.option(
    "--junit",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write JUnit XML here, for continuous integration.",
)
@LIMITS
@JSON
def command(
    files: tuple[Path, ...],
    name_contains: str,
    with_coverage: bool,
    min_coverage: int | None,
    require_tests: bool,
    junit: Path | None,
    limits: Path | None,
    as_json: bool,
) -> None:
    """Run the tests of policies, or of all in a directory, on membership strings and on recorded telemetry.

    \b
    tidegate test dsl/examples/edge.tide --coverage
    """
    read_limits(limits_path(limits))  # what is wrong with them is told once, not of each policy
    found = find_policies(files)
    tested = read_each(found, partial(read_tests, limits=limits_path(limits)))
    with status("testing") as progress:
        reports = run_tests(tested, name_contains=name_contains, on_progress=progress)
    code = exit_code(reports, complete=len(tested) == len(found))
    covered = coverage(reports) if with_coverage or min_coverage is not None else None
    if junit:
        write_atomically(junit, junit_xml(reports))
    if covered is not None and min_coverage is not None:
        done, of = share(covered)
        if done * 100 < min_coverage * of:
            click.echo(f"coverage is below {min_coverage}%: {share_in_words(covered)}", err=True)
            code = code or ANSWER_IS_NO
    if not any(each.tried for each in reports) and all(each.tested.policy for each in reports):
        _say_no_tests(name_contains)
        code = code or (ANSWER_IS_NO if require_tests else 0)
    if as_json:
        print_json(report.document(reports, covered, code))
    else:
        for each in reports:
            _show(each)
        if any(each.tried for each in reports):
            click.echo(report.summary(reports))
        for line in report.coverage_lines(covered or ()) if covered is not None else ():
            click.echo(line)
    sys.exit(code)


def _say_no_tests(name_contains: str) -> None:
    which = f" whose name contains `{name_contains}`" if name_contains else ""
    click.echo(f"note: there is no test{which}", err=True)


def _show(found: FileReport) -> None:
    if found.tested.policy is None:
        click.echo(render(found.tested.checked, color=colored(err=True)), err=True)
        click.echo(f"{found.tested.path}: has errors, its tests were not run\n", err=True)
        return
    if found.tried:
        click.echo(str(found.tested.path))
    for tried in found.tried:
        _show_test(tried)


def _show_test(tried: Tried) -> None:
    passed = tried.status == "ok"
    words = {"ok": "ok", "failed": "FAIL", "unreadable": "ERROR", "not run": "SKIP"}[tried.status]
    head = f"  {words:<5} {tried.test.name}  (line {tried.test.clause.line})"
    click.echo(click.style(head, fg="green" if passed else "red") if colored() else head)
    for line in report.detail(tried):
        click.echo(f"          {line}")
