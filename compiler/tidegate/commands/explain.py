"""`tidegate explain`."""

import ipaddress
from pathlib import Path
from typing import Any

import click

from tidegate import show, state
from tidegate.commands.options import JSON, LIMITS
from tidegate.commands.policies import read_policy
from tidegate.commands.settings import Settings, pass_settings
from tidegate.commands.store import opened
from tidegate.commands.terminal import console, print_json
from tidegate.errors import ANSWER_IS_NO, BAD_INPUT, Failure
from tidegate.explain import document as explained
from tidegate.explain import explain as explain_prefix
from tidegate.explain import measured_prefix
from tidegate.plan import Plan, load


@click.command("explain")
@click.argument("prefix")
@click.option("--at", "pop", required=True, help="The POP.")
@click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path), help="A saved plan.  [default: the applied one]"
)
@LIMITS
@JSON
@pass_settings
def command(
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
    checked = read_policy(Path(made.document["policy"]["path"]), limits)
    if made.document["policy"]["digest"] != checked.digest:
        raise Failure(
            f"{checked.path} changed since the plan was made: its clauses are not those that decided",
            help=f"make a plan of it and explain that: tidegate plan {checked.path}",
            exit_code=ANSWER_IS_NO,
        )
    network = _network(prefix)
    if pop not in made.pops:
        raise Failure(f"`{pop}` is no POP of the inventory", help=f"there are {show.names(list(made.pops))}")
    with state.locked(settings.state), opened(settings) as client:
        found = [
            explain_prefix(client, select, made.watermark, pop, measured_prefix(select, network))
            for select in checked.selects
        ]
    decisions = {d["prefix"]: d for d in made.pops[pop]["decisions"]}
    if as_json:
        print_json([explained(each, decisions.get(each.prefix)) for each in found])
        return
    for each in found:
        outcome = _outcome(made, pop, each.prefix, decisions.get(each.prefix))
        if outcome is None:
            outcome = (
                f"qualifies, and no rule that applies in {pop} asks for it"
                if each.qualifies
                else "not selected"
            )
        show.explanation(console(), each, outcome)


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
