"""An Ansible YAML inventory to the fleet that policies name.

Read directly, not through ansible-inventory: a policy is checked in milliseconds on a machine without Ansible.
A group may be defined in several places, as in Ansible; what is said of it adds up.
"""

import re
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tidegate_dsl.diagnostics import InputError, unreadable
from tidegate_dsl.model import Fleet, Pop
from tidegate_dsl.vocabulary import RESERVED_NAMES

from .documents import Document
from .hosts import expand

if TYPE_CHECKING:
    from yaml.nodes import Node

POPS_GROUP: Final = "pops"
_POP_NAME: Final = re.compile(
    r"[a-z][a-z0-9_]{0,15}"
)  # schemas/vars.schema.json: 16 bytes in a telemetry row
_FILES: Final = ("hosts.yml", "hosts.yaml")


@dataclass(slots=True)
class _Group:
    hosts: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    variables: "dict[str, Node]" = field(default_factory=dict)


def read_fleet(inventory: Path) -> Fleet:
    """POPs, groups, hosts and own prefixes of an inventory.

    A POP is a group below `pops` whose variable `tidegate_pop` names it; its groups are those between `pops` and it.

    Args:
        inventory: the directory that holds hosts.yml, or the file itself.

    Raises:
        InputError: it can not be read or is not such an inventory; the message names the line.
    """
    document = Document(inventory_file(inventory))
    groups: dict[str, _Group] = {}
    if document.root is not None:
        for name, _, body in document.pairs(document.root, "the inventory"):
            _collect(document, name, body, groups, ())
    if POPS_GROUP not in groups:
        raise InputError(
            f"{document.path} has no group `{POPS_GROUP}`", help="put every POP's group below it"
        )
    paths: dict[str, set[str]] = {}
    _walk(document, groups, POPS_GROUP, (), paths)
    pops = sorted(
        (_pop(document, groups, name, above) for name, above in paths.items()), key=lambda pop: pop.name
    )
    _check_names(document, pops)
    top = groups.get("all", _Group()).variables
    return Fleet(tuple(pops), _prefixes(document, top.get("tidegate_origins"), "`tidegate_origins`"))


def inventory_directory(inventory: Path) -> Path:
    """The directory of hosts.yml, whether `inventory` names it or the file."""
    return inventory if inventory.is_dir() else inventory.parent


def inventory_file(inventory: Path) -> Path:
    """The file that `read_fleet` reads.

    Raises:
        InputError: the directory can not be read or holds none.
    """
    try:
        if not inventory.is_dir():
            return inventory
        for name in _FILES:
            if (inventory / name).exists():
                return inventory / name
    except OSError as error:  # a path that is too long, or a directory that is not ours to read
        raise unreadable(inventory, error) from error
    raise InputError(f"{inventory} holds no {_FILES[0]}")


def _collect(
    document: Document, name: str, body: "Node", groups: dict[str, _Group], above: tuple[str, ...]
) -> None:
    """Add what is said of a group, and of the groups defined inside it."""
    if name in above:
        raise document.fault(body, f"group `{name}` contains itself")
    group = groups.setdefault(name, _Group())
    for key, _, value in document.pairs(body, f"group `{name}`"):
        if key == "hosts":
            for pattern, at, _ in document.pairs(value, f"hosts of `{name}`"):
                try:
                    group.hosts += expand(pattern)
                except ValueError as error:
                    raise document.fault(at, str(error)) from error
        elif key == "vars":
            group.variables.update(
                (name, node) for name, _, node in document.pairs(value, f"vars of `{name}`")
            )
        elif key == "children":
            for child, _, child_body in document.pairs(value, f"children of `{name}`"):
                group.children.append(child)
                _collect(document, child, child_body, groups, (*above, name))


def _walk(
    document: Document,
    groups: dict[str, _Group],
    name: str,
    above: tuple[str, ...],
    paths: dict[str, set[str]],
) -> None:
    """Find the POPs below a group, and the groups above each."""
    if name in above:
        raise InputError(f"{document.path}: group `{name}` contains itself")
    if "tidegate_pop" in groups[name].variables:
        paths.setdefault(name, set()).update(above[1:])
        return
    for child in groups[name].children:
        _walk(document, groups, child, (*above, name), paths)


def _pop(document: Document, groups: dict[str, _Group], group: str, above: set[str]) -> Pop:
    variables = groups[group].variables
    name = document.text(variables["tidegate_pop"], "`tidegate_pop`")
    if not _POP_NAME.fullmatch(name):
        raise document.fault(
            variables["tidegate_pop"],
            f"`{name}` is no POP name",
            way_out="a POP name is a lower-case letter and up to 15 letters, digits and `_`",
        )
    if name in RESERVED_NAMES:
        raise document.fault(
            variables["tidegate_pop"], f"`{name}` is a word of the policy language, not a POP name"
        )
    own = _prefixes(document, variables.get("tidegate_own_prefixes"), "`tidegate_own_prefixes`")
    return Pop(name, tuple(sorted(above)), tuple(sorted(_hosts(groups, group))), own)


def _hosts(groups: dict[str, _Group], name: str) -> set[str]:
    """Hosts of a group and of the groups below it."""
    hosts: set[str] = set()
    open_groups, seen = [name], {name}
    while open_groups:
        group = groups[open_groups.pop()]
        hosts.update(group.hosts)
        below = set(group.children) - seen
        seen |= below
        open_groups += below
    return hosts


def _prefixes(document: Document, node: "Node | None", what: str) -> tuple[str, ...]:
    prefixes: list[str] = []
    for text, item in document.items(node, what) if node else ():
        try:
            prefixes.append(str(ip_network(text)))
        except ValueError as error:
            raise document.fault(item, f"{what}: {error}") from error
    return tuple(prefixes)


def _check_names(document: Document, pops: list[Pop]) -> None:
    """Refuse a name that a policy could read in two ways."""
    names = [pop.name for pop in pops]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InputError(f"{document.path}: two groups are the POP `{min(twice)}`")
    both = set(names) & {group for pop in pops for group in pop.groups}
    if both:
        raise InputError(f"{document.path}: `{min(both)}` is both a POP and a group of POPs")
    if not pops:
        raise InputError(f"{document.path}: no group below `{POPS_GROUP}` has the variable `tidegate_pop`")
