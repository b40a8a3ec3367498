"""An `initcwnd` block: windows that are set as they stand."""

from collections.abc import Iterable
from ipaddress import ip_network

from tidegate_dsl.model import Initcwnd
from tidegate_dsl.syntax import find, tree
from tidegate_dsl.values import Network, check_prefix, order
from tidegate_dsl.vocabulary import FAMILIES

from .repeats import check_repeats
from .scope import Scope
from .window import check_window


def check_initcwnd(block: tree.Block, scope: Scope) -> Initcwnd | None:
    """The setting; None where a part of it is missing or reported."""
    clauses = block.body.clauses
    whose, where = find(clauses, tree.For), find(clauses, tree.In)
    set_ = find(clauses, tree.SetWindow)
    networks = [_network(target, scope) for target in whose.targets] if whose else None
    pops = scope.pops(where) if where else None
    segments = check_window(set_, "initcwnd", scope.limits.initcwnd_max_segments, scope) if set_ else None
    if networks is None or pops is None or segments is None:
        return None
    whole = [network for network in networks if network is not None]
    if whose is None or len(whole) < len(networks) or check_repeats(whose.targets, whole, scope.findings):
        return None
    prefixes = tuple(str(network) for network in sorted(whole, key=order))
    return Initcwnd(block.name.text, scope.clause(block.span), prefixes, pops, segments)


def check_one_window_per_prefix(made: Iterable[tuple[tree.Block, Initcwnd]], scope: Scope) -> None:
    """Report a prefix that two blocks give a window in one POP."""
    owners: dict[tuple[str, str], str] = {}
    for block, setting in made:
        whose = find(block.body.clauses, tree.For)
        places = [
            (target, (pop, str(_known(target))))
            for target in (whose.targets if whose else ())
            for pop in setting.pops
        ]
        for target, (pop, prefix) in [place for place in places if place[1] in owners][:1]:
            scope.of(block).findings.error(
                "C122",
                f"`{owners[pop, prefix]}` sets a window for `{prefix}` in `{pop}` already",
                target.span,
                help=f"write `except {pop}`, or put both into one block",
            )
        for _, key in places:
            owners.setdefault(key, setting.name)


def _known(target: tree.Name) -> Network:
    """The network of a target that was checked."""
    return ip_network(FAMILIES.get(target.text, target.text))


def _network(target: tree.Name, scope: Scope) -> Network | None:
    if target.text in FAMILIES:
        return ip_network(FAMILIES[target.text])
    return check_prefix(target, scope.findings)
