"""The `tidegate` command: its options, its subcommands by name, and what their failures become."""

import errno
import os
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click
from tidegate_dsl import InputError

from tidegate.commands import terminal
from tidegate.commands.settings import Settings
from tidegate.errors import BAD_INPUT, MISSING_PART, Failure

# In the order of use, each with what `tidegate --help` says of it: only the one that is asked for is loaded.
COMMANDS: Final = {
    "check": "Check policies: names, units, ranges, contradictions and their own tests.",
    "fmt": "Write policies in their one canonical layout.",
    "test": "Run the tests that policies hold, those on recorded telemetry too.",
    "simulate": "Write the telemetry of a simulated fleet, to try policies on.",
    "ingest": "Load telemetry files: rows of the collector, or M-Lab's archives.",
    "schema": "Bring the telemetry store up to date, or tell what is pending.",
    "windows": "Show which windows are closed and what came late; reopen some.",
    "plan": "Select, decide, ask the guard, save the plan and show it.",
    "apply": "Write a saved plan's variables for the playbooks.",
    "explain": "Say why a prefix is selected or not.",
    "guard": "Ask the guard about the variables that stand in an inventory.",
    "fleet": "Print POPs and own prefixes as fleet.json, which the collector reads.",
    "lsp": "Serve editors: the language server on standard input and output.",
    "completion": "Print the completion script of a shell.",
}


class _Commands(click.Group):
    """Loads the subcommand that is asked for, and turns a Failure into its message and exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click asks for it
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"tidegate.commands.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        try:
            return super().invoke(ctx)
        except Failure as failure:
            terminal.failure(failure.message, failure.help)
            ctx.exit(failure.exit_code)
        except InputError as error:
            terminal.failure(error.message, error.help)
            ctx.exit(BAD_INPUT)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            terminal.failure(f"the output cannot be written: {error.strerror}", None)
            # What is still buffered would fail again at the interpreter's end, and change the exit code.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            ctx.exit(MISSING_PART)


@click.group(cls=_Commands, epilog="Exit codes: 0 yes, 1 no, 2 bad input, 3 something needed is missing.")
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
