"""The fleet's POPs and groups, as an editor shows them."""

from tidegate_dsl.model import Fleet, Pop


def describe(fleet: Fleet, word: str) -> str | None:
    """What a POP, a group or `all` stands for; None for another word."""
    pop = next((pop for pop in fleet.pops if pop.name == word), None)
    if pop is not None:
        return _pop(pop)
    members = [pop for pop in fleet.pops if word == "all" or word in pop.groups]
    if not members:
        return None
    listed = ", ".join(f"`{pop.name}`" for pop in members)
    what = "all POPs of the inventory" if word == "all" else f"group `{word}`"
    return f"{what}: {listed} ({_count(sum(len(pop.hosts) for pop in members), 'host')})"


def groups(fleet: Fleet) -> list[str]:
    """The names of all groups, sorted."""
    return sorted({group for pop in fleet.pops for group in pop.groups})


def _pop(pop: Pop) -> str:
    said = [f"POP `{pop.name}`"]
    if pop.groups:
        said.append(f"groups: {', '.join(f'`{group}`' for group in pop.groups)}")
    said.append(f"{_count(len(pop.hosts), 'host')}: {', '.join(pop.hosts)}")
    if pop.own_prefixes:
        said.append(f"own prefixes: {', '.join(pop.own_prefixes)}")
    return "  \n".join(said)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
