"""`python -m tidegate_lab EXPERIMENT`: run an experiment, show its numbers, and say whether its claims hold."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click
from tidegate_edge.errors import Failure

from tidegate_lab.experiments import loss as loss_experiment
from tidegate_lab.experiments import riptide as riptide_experiment
from tidegate_lab.experiments import starved as starved_experiment
from tidegate_lab.experiments import struct_ops as struct_ops_experiment
from tidegate_lab.experiments import struct_ops_rule
from tidegate_lab.experiments.claim import Claim

Measured = TypeVar("Measured")

_MISSING_PART = 3  # CONTRIBUTING.md, exit codes


@click.group()
def main() -> None:
    """The TCP laboratory.

    Exit code 0: every claim of the experiment holds; 1: one does not; 3: not root, or something is missing.

    Example: python -m tidegate_lab loss
    """
    if os.geteuid() != 0:
        click.echo(
            "error: the laboratory makes network namespaces and needs root\n  help: use sudo", err=True
        )
        sys.exit(_MISSING_PART)


_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@main.command()
@_json_option
def loss(as_json: bool) -> None:
    """Completion times of 3 MB objects under random loss, CUBIC and BBR.

    Example: python -m tidegate_lab loss --json
    """
    outcomes = _measured(loss_experiment.measure)
    claims = loss_experiment.claims(outcomes)
    lines = ["loss   algorithm  transfers     p10  median     p90  seconds   measured loss  late"]
    for one in outcomes:
        times, counters = one.times, one.counters
        lines.append(
            f"{one.loss:<6} {one.algorithm:<9} {times.transfers:>10} {times.p10_s:>7.2f} {times.median_s:>7.2f}"
            f" {times.p90_s:>7.2f} {counters.lost / counters.offered:>23.4f}  {counters.late_mean_us:.0f} us"
        )
    _report({"outcomes": [asdict(one) for one in outcomes]}, lines, claims, as_json=as_json)


@main.command()
@_json_option
def riptide(as_json: bool) -> None:
    """Completion times of small objects between POPs by initial window: the kernel's, static ones, learned ones.

    Example: python -m tidegate_lab riptide --json
    """
    report = _measured(riptide_experiment.measure)
    path = report.under_loss
    lines = ["initial window         size     p10  median     p90  seconds   round trips"]
    for one in report.outcomes:
        times = one.times
        lines.append(
            f"{one.arm:<11} {one.initcwnd:>6} {one.size:>9} {times.p10_s:>7.2f} {times.median_s:>7.2f}"
            f" {times.p90_s:>7.2f} {times.median_s / riptide_experiment.ROUND_TRIP_S:>22.1f}"
        )
    lines.append(
        f"learned before packets were lost {path.before} segments, five observations later {path.after}"
    )
    lines += [
        f"link {name}: late at most {max(part[name].late_mean_us for part in report.counters):.0f} us on average"
        for name in report.counters[0]
    ]
    _report(asdict(report), lines, riptide_experiment.claims(report), as_json=as_json)


@main.command()
@click.option(
    "--package", type=click.Path(path_type=Path), default=Path("/"), show_default=True,
    help="Where Debian's user-mode-linux is unpacked (`dpkg -x`).",
)  # fmt: skip
@_json_option
def starved(package: Path, as_json: bool) -> None:
    """Goodput of a sender whose kernel gets slices of time, CUBIC and BBR, and who shows the signature.

    Example: python -m tidegate_lab starved --package unpacked
    """
    outcomes = _measured(lambda: starved_experiment.measure(package))
    lines = ["algorithm  sends   on/off ms   loss   Mbit/s   in flight/path   judged  starved"]
    for one in outcomes:
        case = one.case
        share = "-" if one.share is None else f"{one.share:.2f}"
        slices = f"{case.on_ms:g}/{case.off_ms:g}" if case.off_ms else "always on"
        lines.append(
            f"{case.algorithm:<10} {case.manner:<5} {slices:>11} {case.loss:>6} {one.mbit_s:>8.1f} {share:>16}"
            f" {one.judged:>4}/{one.samples:<3} {one.starved:>8}"
        )
    document = {"outcomes": [asdict(one) for one in outcomes]}
    _report(document, lines, starved_experiment.claims(outcomes), as_json=as_json)


@main.command("struct_ops")
@click.option("--seeds", type=click.IntRange(2), default=5, show_default=True, help="Runs of each case.")
@_json_option
def struct_ops(seeds: int, as_json: bool) -> None:
    """BBR that raises its pacing while bytes wait, beside BBR and CUBIC, by what the sender's CPU does.

    It takes a CPU of this machine away from everybody, for a third to two thirds of some minutes.

    Example: python -m tidegate_lab struct_ops --seeds 2
    """
    outcomes = _measured(lambda: struct_ops_experiment.measure(seeds))
    header = "algorithm       on/off ms  buffer   loss   Mbit/s (least-most)"
    lines = [f"{header}  1 MB: p5   p50   p95 s   again  in flight/path  raised"]
    figures = struct_ops_rule.figures(outcomes)
    for one in figures:
        case, (least, most) = one.condition, one.mbit_s_between
        slices = f"{case.on_ms:g}/{case.off_ms:g}" if case.off_ms else "always on"
        share = "-" if one.share is None else f"{one.share:.2f}"
        lines.append(
            f"{one.algorithm:<15} {slices:>9} {case.buffer:>7} {case.loss:>6} {one.mbit_s:>8.1f}"
            f" {f'({least:.1f}-{most:.1f})':>12} {one.p5_s:>16.2f} {one.p50_s:>5.2f} {one.p95_s:>5.2f}"
            f" {one.retransmitted:>9.1%} {share:>15} {one.raised:>7.1%}"
        )
    document = {
        "figures": [asdict(one) for one in figures],
        "outcomes": [asdict(one) for one in outcomes],
    }
    _report(document, lines, struct_ops_rule.claims(outcomes), as_json=as_json)


def _measured(measure: Callable[[], Measured]) -> Measured:
    try:
        return measure()
    except (Failure, OSError, RuntimeError, subprocess.SubprocessError) as error:
        reasons = "".join(f"\n  {note.strip()}" for note in getattr(error, "__notes__", []))
        click.echo(f"error: the laboratory cannot work here: {error}{reasons}", err=True)
        sys.exit(_MISSING_PART)


def _report(
    document: dict[str, Any], lines: Sequence[str], claims: Sequence[Claim], *, as_json: bool
) -> None:
    if as_json:
        click.echo(json.dumps(document | {"claims": [asdict(one) for one in claims]}, indent=2))
    else:
        lines = [*lines, *(f"{'holds' if claim.holds else 'FAILS'}  {claim.text}" for claim in claims)]
        click.echo("\n".join(lines))
    sys.exit(0 if all(claim.holds for claim in claims) else 1)


if __name__ == "__main__":
    main()
