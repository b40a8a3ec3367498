"""The `tidegate` command. It only wires: every step stands in a file of its own."""

import errno
import ipaddress
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from tidegate_dsl import InputError, check_file, read_fleet, render, summary
from tidegate_dsl.model import Policy

from tidegate import emit, show, state
from tidegate.apply import guard_input, refuse_stale, refuse_unknown_variables
from tidegate.errors import ANSWER_IS_NO, BAD_INPUT, MISSING_PART, Failure
from tidegate.explain import document as explained
from tidegate.explain import explain as explain_prefix
from tidegate.explain import measured_prefix
from tidegate.fleet import fleet_document
from tidegate.guard import judge, vars_document
from tidegate.plan import Plan, load, parse_time, save
from tidegate.run import make_plan

OUT: Final = Console(highlight=False)
# What ClickHouse's DateTime holds.
_EARLIEST: Final = datetime(1970, 1, 2, tzinfo=UTC)
_LATEST: Final = datetime(2106, 1, 1, tzinfo=UTC)
ERR: Final = Console(stderr=True, highlight=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of the whole command."""

    state: Path
    dsn: str
    opa: str


class _Moment(click.ParamType[datetime]):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:  # noqa: ANN401
        if isinstance(value, datetime):
            return value
        try:
            moment = parse_time(value)
            if _EARLIEST <= moment < _LATEST:
                return moment
            self.fail(f"{value} is not between {_EARLIEST:%Y} and {_LATEST:%Y}", param, ctx)
        except ValueError:
            self.fail(f"`{value}` is not a UTC time such as 2026-11-20T06:00:00Z", param, ctx)


class _Group(click.Group):
    """Turns a Failure into its message and exit code."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        try:
            return super().invoke(ctx)
        except Failure as failure:
            show.failure(ERR, failure.message, failure.help)
            ctx.exit(failure.exit_code)
        except InputError as error:
            show.failure(ERR, error.message, error.help)
            ctx.exit(BAD_INPUT)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            show.failure(ERR, f"the output cannot be written: {error.strerror}", None)
            # What is still buffered would fail again at the interpreter's end, and change the exit code.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            ctx.exit(MISSING_PART)


_AS_OF = click.option(
    "--as-of", type=_Moment(), help="Plan for this time instead of now, e.g. 2026-11-20T06:00:00Z."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_LIMITS = click.option(
    "--limits",
    type=click.Path(path_type=Path),
    help="Limits that policies must keep; default: those that the guard reads.",
)
_INVENTORY = click.option(
    "--inventory",
    type=click.Path(path_type=Path),
    required=True,
    help="Directory of the inventory's hosts.yml.",
)
pass_settings = click.make_pass_decorator(Settings)


@click.group(cls=_Group, epilog="Exit codes: 0 yes, 1 no, 2 bad input, 3 something needed is missing.")
@click.option(
    "--state",
    "state_dir",
    type=click.Path(path_type=Path),
    default=Path(".tidegate"),
    show_default=True,
    envvar="TIDEGATE_STATE",
    help="Directory of saved plans and of the embedded store.",
)
@click.option(
    "--dsn",
    envvar="TIDEGATE_DSN",
    help="Telemetry store: chdb:///path, or https://user@host:8443/database.  [default: chdb in the state directory]",
)
@click.option(
    "--opa", default="opa", show_default=True, envvar="TIDEGATE_OPA", help="The Open Policy Agent binary."
)
@click.version_option(package_name="tidegate")
@click.pass_context
def main(ctx: click.Context, state_dir: Path, dsn: str | None, opa: str) -> None:
    """Policy as code for TCP on an edge fleet.

    \b
    tidegate check edge.tide
    tidegate ingest fra2.pb
    tidegate plan edge.tide
    tidegate apply .tidegate/plans/PLAN.json
    """
    ctx.obj = Settings(state_dir, dsn or f"chdb://{state_dir.absolute() / 'telemetry'}", opa)


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--inventory", type=click.Path(path_type=Path), help="Use this inventory instead of the policy's."
)
@_LIMITS
@_JSON
def check(files: tuple[Path, ...], inventory: Path | None, limits: Path | None, as_json: bool) -> None:
    """Check policies: names, units, ranges, contradictions and their own tests.

    \b
    tidegate check dsl/examples/edge.tide
    """
    results = [check_file(path, inventory=inventory, limits=_limits(limits)) for path in files]
    failed = any(result.policy is None for result in results)
    if as_json:
        found = [d.to_json() for result in results for d in result.diagnostics]
        _print_json({"ok": not failed, "diagnostics": found})
    else:
        for result in results:
            if result.diagnostics:
                click.echo(render(result, color=OUT.is_terminal) + "\n")
        click.echo(
            summary((str(path), result.diagnostics) for path, result in zip(files, results, strict=True))
        )
    sys.exit(ANSWER_IS_NO if failed else 0)


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@_JSON
@pass_settings
def ingest(settings: Settings, files: tuple[Path, ...], as_json: bool) -> None:
    """Load telemetry files: rows of the collector, or M-Lab's archives. Loading a file again adds nothing.

    \b
    tidegate ingest ams1.pb fra2.pb
    """
    from tidegate.telemetry.ingest import ingest_file  # noqa: PLC0415 - a policy author has no store installed

    reports = []
    with _store(settings) as client:
        for path in files:
            with _progress(f"loading {path.name}") as step:
                reports.append(ingest_file(client, path, on_progress=step))
    if as_json:
        _print_json([{**asdict(report), "path": str(report.path)} for report in reports])
    else:
        for report in reports:
            left = "".join(f", {count} left out: {reason}" for reason, count in report.left_out.items())
            click.echo(f"{report.path}: {report.added} rows added, {report.rows - report.added} known{left}")


@main.command()
@_INVENTORY
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory for one file a POP.")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--start", type=_Moment(), default="2026-11-20T00:00:00Z", show_default=True)
@click.option("--hours", type=click.IntRange(1, 24 * 31), default=6, show_default=True)
def simulate(inventory: Path, out: Path, seed: int, start: datetime, hours: int) -> None:
    """Write the telemetry of a simulated fleet, to try policies on. The same seed gives the same bytes.

    \b
    tidegate simulate --inventory inventory --out build/simulated
    """
    import tidegate.telemetry  # noqa: PLC0415, F401 - says which extra is missing
    from tidegate.simulate import simulate as run_simulation  # noqa: PLC0415

    with _status("simulating a fleet"):
        paths = run_simulation(read_fleet(inventory), seed=seed, start=start, hours=hours, out=out)
    for path in paths:
        click.echo(path)


@main.command()
@click.argument("policy", type=click.Path(path_type=Path))
@_AS_OF
@click.option(
    "--grace",
    type=click.IntRange(0, 86400),
    default=30,
    show_default=True,
    help="Seconds that samples may arrive late; a window closes only after them.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Save the plan here.  [default: in the state directory]"
)
@_LIMITS
@_JSON
@pass_settings
def plan(
    settings: Settings,
    policy: Path,
    as_of: datetime | None,
    grace: int,
    out: Path | None,
    limits: Path | None,
    as_json: bool,
) -> None:
    """Select, decide, ask the guard, save the plan and show it. Nothing is applied.

    \b
    tidegate plan dsl/examples/edge.tide
    """
    checked = _checked(policy, limits)
    now = _now()
    with state.locked(settings.state), _store(settings) as client, _status("planning") as progress:
        applied = state.applied(settings.state)
        refuse_unknown_variables(Path(checked.inventory), applied, None)
        if out:
            state.refuse_to_replace(out, settings.state)
        made = make_plan(
            client,
            checked,
            applied,
            as_of=as_of or now,
            grace=timedelta(seconds=grace),
            created_at=now,
            progress=progress,
        )
        found = judge(guard_input(made, checked), opa=settings.opa)
        path = out or state.saved_path(settings.state, made)
        save(made, path)
        state.forget_old_plans(settings.state, path)
    if as_json:
        _print_json({"plan": made.document, "guard": asdict(found), "path": str(path)})
    else:
        show.plan_by_pop(OUT, made)
        show.verdict(OUT, found)
        click.echo(f"Saved as {path}")
    sys.exit(0 if found.allow else ANSWER_IS_NO)


@main.command()
@click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=Path))
@_LIMITS
@_JSON
@pass_settings
def apply(settings: Settings, plan_file: Path, limits: Path | None, as_json: bool) -> None:
    """Write a saved plan's variables for the playbooks. A stale, edited or denied plan is refused.

    \b
    tidegate apply .tidegate/plans/20261120T060000Z-0123456789abcdef.json
    """
    with state.locked(settings.state):
        made = load(plan_file)
        checked = _checked(Path(made.document["policy"]["path"]), limits)
        applied = state.applied(settings.state)
        refuse_stale(made, checked, applied, _now())
        refuse_unknown_variables(Path(checked.inventory), applied, made)
        found = judge(guard_input(made, checked), opa=settings.opa)
        written = []
        if found.allow:
            written = emit.emit(made, _short(Path(checked.inventory)))
            state.record_applied(settings.state, made)
    if as_json:
        files = [{"pop": w.pop, "path": str(w.path), "action": w.action} for w in written]
        _print_json({"generation": made.generation, "guard": asdict(found), "files": files})
    else:
        show.verdict(OUT, found)
        show.files(OUT, written)
    sys.exit(0 if found.allow else ANSWER_IS_NO)


@main.command()
@click.argument("prefix")
@click.option("--at", "pop", required=True, help="The POP.")
@click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path), help="A saved plan.  [default: the applied one]"
)
@_LIMITS
@_JSON
@pass_settings
def explain(
    settings: Settings, prefix: str, pop: str, plan_file: Path | None, limits: Path | None, as_json: bool
) -> None:
    """Say why a prefix is selected or not: its windows, and each clause with what was found.

    \b
    tidegate explain 198.18.7.0/24 --at fra2
    """
    made = load(plan_file) if plan_file else state.applied(settings.state)
    if made is None:
        raise Failure(
            "nothing is applied yet", help="name a saved plan with `--plan FILE`", exit_code=BAD_INPUT
        )
    checked = _checked(Path(made.document["policy"]["path"]), limits)
    if made.document["policy"]["digest"] != checked.digest:
        raise Failure(
            f"{checked.path} changed since the plan was made: its clauses are not those that decided",
            help=f"make a plan of it and explain that: tidegate plan {checked.path}",
            exit_code=ANSWER_IS_NO,
        )
    network = _network(prefix)
    if pop not in made.pops:
        raise Failure(f"`{pop}` is no POP of the inventory", help=f"there are {show.names(list(made.pops))}")
    with state.locked(settings.state), _store(settings) as client:
        found = [
            explain_prefix(client, select, made.watermark, pop, measured_prefix(select, network))
            for select in checked.selects
        ]
    decisions = {d["prefix"]: d for d in made.pops[pop]["decisions"]}
    if as_json:
        _print_json([explained(each, decisions.get(each.prefix)) for each in found])
        return
    for each in found:
        outcome = _outcome(made, pop, each.prefix, decisions.get(each.prefix))
        if outcome is None:
            outcome = (
                f"qualifies, and no rule that applies in {pop} asks for it"
                if each.qualifies
                else "not selected"
            )
        show.explanation(OUT, each, outcome)


@main.command()
@_INVENTORY
@_JSON
@pass_settings
def guard(settings: Settings, inventory: Path, as_json: bool) -> None:
    """Ask the guard about the variables that stand in an inventory; the playbook's first task.

    \b
    tidegate guard --inventory inventory
    """
    fleet = read_fleet(inventory)
    directory = inventory.parent if inventory.is_file() else inventory
    found = judge(vars_document(emit.read_vars(directory), fleet_document(fleet)), opa=settings.opa)
    if as_json:
        _print_json(asdict(found))
    else:
        show.verdict(OUT, found)
    sys.exit(0 if found.allow else ANSWER_IS_NO)


@main.command()
@_INVENTORY
def fleet(inventory: Path) -> None:
    """Print POPs and own prefixes as fleet.json, which the collector classifies traffic by.

    \b
    tidegate fleet --inventory inventory > fleet.json
    """
    _print_json(fleet_document(read_fleet(inventory)))


def _checked(path: Path, limits: Path | None) -> Policy:
    """The policy, or a Failure that carries its errors."""
    result = check_file(path, inventory=None, limits=_limits(limits))
    if result.policy is None:
        click.echo(render(result, color=ERR.is_terminal), err=True)
        raise Failure(
            f"{path} has errors", help=f"see them with `tidegate check {path}`", exit_code=ANSWER_IS_NO
        )
    return result.policy


def _limits(path: Path | None) -> Path:
    """The limits that the guard reads too, named as short as can be."""
    shipped = Path(str(resources.files("tidegate") / "policies" / "limits.yaml"))
    return path or _short(shipped)


def _short(path: Path) -> Path:
    """The same file or directory, named from here where it lies below."""
    whole, here = path.resolve(), Path.cwd()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole


def _network(prefix: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(prefix)
    except ValueError as error:
        raise Failure(
            f"`{prefix}` is not a prefix: {error}", help="write 192.0.2.0/24 or 2001:db8::/56"
        ) from error


def _outcome(made: Plan, pop: str, prefix: str, decision: dict[str, Any] | None) -> str | None:
    """What the plan says of a prefix, in words; None where it says nothing."""
    if decision:
        arm = decision["arm"].replace("_", " ")
        return f"{decision['action']}, {arm} by {decision['rule']}: {decision['because']}"
    for kind in ("deferred", "released"):
        for entry in made.pops[pop][kind]:
            if entry["prefix"] == prefix:
                return f"{kind} by {entry['rule']}: {entry['because']}"
    return None


@contextmanager
def _store(settings: Settings) -> Iterator[Any]:
    from tidegate.telemetry.migrate import migrate  # noqa: PLC0415
    from tidegate.telemetry.store import open_store  # noqa: PLC0415

    with open_store(settings.dsn) as client:
        migrate(client)
        yield client


@contextmanager
def _status(what: str) -> Iterator[Any]:
    """A line that says what is being done, on a terminal only."""
    with ERR.status(what) as status:
        yield status.update


@contextmanager
def _progress(what: str) -> Iterator[Any]:
    """As `_status`, with how far it is."""
    with ERR.status(what) as status:
        yield lambda done, total: status.update(f"{what}: {100 * done // max(total, 1)}%")


def _print_json(document: object) -> None:
    click.echo(json.dumps(document, indent=2, sort_keys=True))


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
