"""A receive window is warned of just where a host of another POP may learn to send more."""

from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from tidegate_dsl import check_text, read_limits, render

HERE = Path(__file__).parent
LIMITS = read_limits(HERE / "limits.yaml")
PARTITIONS = (("ams1 fra2 iad1",), ("ams1 fra2", "iad1"), ("ams1", "fra2", "iad1"), ("ams1",))


@dataclass(frozen=True)
class Block:
    """A `learn` block, as it is written."""

    pops: tuple[str, ...]
    toward: str
    most: int
    offered: int | None

    def text(self, number: int) -> str:
        offer = "" if self.offered is None else f"  set initrwnd {self.offered} segments\n"
        return (
            f"learn l{number} {{\n  observe cwnd by destination\n  toward {self.toward}\n"
            f"  in {', '.join(self.pops)}\n  smooth 0.5 every 1s\n"
            f"  set initcwnd between 10 and {self.most} segments\n{offer}  expire 10m\n}}\n"
        )


def narrow(block: Block, blocks: list[Block]) -> bool:
    """Whether some POP offers less than some other learns, looked at pair by pair."""
    return block.offered is not None and any(
        sender.most > block.offered
        for sender in blocks
        for here in block.pops
        for there in sender.pops
        if here != there and "peer_pops" in block.toward and "peer_pops" in sender.toward
    )


@pytest.mark.parametrize("seed", range(60))
def test_a_warning_stands_where_the_pairs_of_pops_say_so(seed: int) -> None:
    dice = Random(seed)
    blocks = [
        Block(
            tuple(pops.split()),
            dice.choice(("peer_pops", "peer_pops, origins", "origins")),
            dice.choice((20, 50, 100)),
            dice.choice((None, 20, 30, 100)),
        )
        for pops in dice.choice(PARTITIONS)
    ]
    written = "".join(block.text(number) for number, block in enumerate(blocks))
    text = f'edition 2026.1\ninventory "{HERE / "fleet"}"\n{written}'
    result = check_text(text, "x.tide", limits=LIMITS)
    found = {text.split("\n")[each.span.line - 1] for each in result.diagnostics}
    assert {each.code for each in result.diagnostics} <= {"W116"}, render(result)
    assert len(result.diagnostics) == sum(narrow(block, blocks) for block in blocks), render(result)
    assert found == {f"  set initrwnd {block.offered} segments" for block in blocks if narrow(block, blocks)}
