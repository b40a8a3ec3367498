"""`tidegate explain`."""

import ipaddress
from pathlib import Path

import click
from tidegate_dsl.model import Policy

from tidegate import show, state
from tidegate.commands.options import JSON, LIMITS
from tidegate.commands.policies import read_policy
from tidegate.commands.settings import Settings, pass_settings
from tidegate.commands.store import opened
from tidegate.commands.terminal import console, print_json
from tidegate.errors import ANSWER_IS_NO, BAD_INPUT, Failure
from tidegate.explain import Explanation, measured_prefix
from tidegate.explain import explain as explain_prefix
from tidegate.explained import document
from tidegate.fate import fate_of, told_of, was_selected
from tidegate.plan import Plan, load
from tidegate.show.explanations import Form, explanation, without_select
from tidegate.show.lines import line

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@click.command(
    "explain",
    epilog="Exit codes: 0 explained, 1 the policy changed since the plan was made, 2 wrong usage or input"
    " that cannot be read, 3 the store gave no answer.",
)
@click.argument("prefix")
@click.option("--at", "pop", required=True, help="The POP.")
@click.option("--short", "form", flag_value="short", default="usual", help="Only the verdict and its reason.")
@click.option(
    "--long", "form", flag_value="long", help="Also the value of every window against its threshold."
)
@click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path), help="A saved plan.  [default: the applied one]"
)
@LIMITS
@JSON
@pass_settings
def command(
    settings: Settings,
    prefix: str,
    pop: str,
    form: Form,
    plan_file: Path | None,
    limits: Path | None,
    as_json: bool,
) -> None:
    """Say why a prefix, or the prefix of an address, is selected or not: its windows, and each clause.

    \b
    tidegate explain 198.18.64.0/24 --at fra2
    tidegate explain 198.18.64.9 --at fra2 --short
    """
    made = load(plan_file) if plan_file else state.applied(settings.state)
    if made is None:
        raise Failure(
            "nothing is applied yet", help="name a saved plan with `--plan FILE`", exit_code=BAD_INPUT
        )
    policy = _policy(made, limits)
    network = _network(prefix)
    if pop not in made.pops:
        raise Failure(f"`{pop}` is no POP of the inventory", help=f"there are {show.names(list(made.pops))}")
    found = _explained(settings, made, policy, pop, network)
    fates = [fate_of(made, policy, each.select, pop, each.prefix) for each in found]
    if as_json:
        decisions = {d["prefix"]: d for d in made.pops[pop]["decisions"]}
        print_json(
            [
                document(each, fate, decisions.get(each.prefix))
                for each, fate in zip(found, fates, strict=True)
            ]
        )
        return
    terminal = console()
    if not policy.selects:
        for style, text in without_select(f"{network} at {pop}", *told_of(made, policy, pop, str(network))):
            line(terminal, style, text)
    for each, fate in zip(found, fates, strict=True):
        for style, text in explanation(each, fate, form=form, width=terminal.width):
            line(terminal, style, text)


def _policy(made: Plan, limits: Path | None) -> Policy:
    """The policy that the plan was made of.

    Raises:
        Failure: it has changed since, so that its clauses are not those that decided.
    """
    policy = read_policy(Path(made.document["policy"]["path"]), limits)
    if made.document["policy"]["digest"] != policy.digest:
        raise Failure(
            f"{policy.path} changed since the plan was made: its clauses are not those that decided",
            help=f"make a plan of it and explain that: tidegate plan {policy.path}",
            exit_code=ANSWER_IS_NO,
        )
    return policy


def _explained(
    settings: Settings, made: Plan, policy: Policy, pop: str, network: Network
) -> list[Explanation]:
    """The view of each select."""
    with state.locked(settings.state), opened(settings) as client:
        return [
            explain_prefix(
                client,
                policy,
                select,
                made.watermark,
                pop,
                prefix,
                selected=was_selected(made, policy, select, pop, prefix),
            )
            for select in policy.selects
            for prefix in [measured_prefix(select, network)]
        ]


def _network(prefix: str) -> Network:
    try:
        return ipaddress.ip_network(prefix)
    except ValueError as error:
        raise Failure(
            f"`{prefix}` is not a prefix: {error}",
            help="write 192.0.2.0/24, 2001:db8::/56, or an address in it",
        ) from error
