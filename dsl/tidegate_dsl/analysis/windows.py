"""What is said of `learn` blocks: that one POP offers less than another learns to send."""

from tidegate_dsl.diagnostics import Findings
from tidegate_dsl.model import Learn
from tidegate_dsl.syntax import tree


def check_learns(pairs: list[tuple[tree.Block, Learn]], findings: Findings) -> None:
    """Warn of receive windows that are narrower than what other POPs learn toward this one.

    A POP has one block, so blocks are of different POPs, and the POPs of one block are each other's peers.
    """
    among_peers = [(block, learn) for block, learn in pairs if "peer_pops" in learn.toward]
    widest = sorted((learn for _, learn in among_peers), key=lambda learn: learn.initcwnd_max)[-2:]
    for block, learn in among_peers:
        sender = next((each for each in reversed(widest) if each is not learn or len(learn.pops) > 1), None)
        if sender and learn.initrwnd is not None and sender.initcwnd_max > learn.initrwnd:
            offer = next(clause for clause in block.body.clauses if isinstance(clause, tree.SetWindow))
            findings.below(block.above).warning(
                "W116",
                f"only {learn.initrwnd} segments are offered, "
                f"and other POPs learn windows of up to {sender.initcwnd_max}",
                offer.segments.span,
                notes=(f"learn {sender.name} on line {sender.clause.line}",),
                help=f"offer `{sender.initcwnd_max} segments` or more, or learn less",
            )
