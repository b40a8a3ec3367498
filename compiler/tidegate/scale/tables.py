"""The tables of docs/scale.md, as Markdown."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Final

from tidegate.errors import Failure
from tidegate.scale.assumed import Assumed
from tidegate.scale.measured import Measurements
from tidegate.scale.sizes import host, sizes

FLEETS: Final = (10, 100, 1_000)
SAMPLED: Final = 10  # the second table of sizes is of a sample so many times thinner
_PREFIXES: Final = ("", "k", "M", "G", "T", "P")


def tables(assumed: Assumed, measured: Measurements, fleets: Sequence[int] = FLEETS) -> dict[str, str]:
    """Each table under the name that its place in the document has."""
    sampled = replace(assumed, sample=assumed.sample * SAMPLED)
    return {
        "assumed": _assumed(assumed),
        "measured": _measured(measured),
        "host": _host(assumed, sampled, measured),
        "every-socket": _sizes(assumed, measured, fleets),
        "sampled": _sizes(sampled, measured, fleets),
    }


def written_into(document: str, by_name: Mapping[str, str]) -> str:
    """The document with each table in its place, between `<!-- table NAME -->` and `<!-- end -->`.

    Raises:
        Failure: a place without a table, or a table without a place.
    """
    places = re.findall(r"<!-- table (\S+) -->", document)
    if sorted(places) != sorted(by_name):
        raise Failure(f"the document has places for {places}, the tables are {list(by_name)}")
    return re.sub(
        r"(<!-- table (\S+) -->\n).*?(<!-- end -->)",
        lambda found: found[1] + by_name[found[2]] + found[3],
        document,
        flags=re.DOTALL,
    )


def scaled(value: float, unit: str) -> str:
    """Two significant digits at least, with the SI prefix: 41_000_000 of `B/s` is `41 MB/s`."""
    power = 0
    while value >= 999.5 and power < len(_PREFIXES) - 1:
        value, power = value / 1000, power + 1
    number = f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
    return f"{number} {_PREFIXES[power]}{unit}".rstrip()


def _assumed(assumed: Assumed) -> str:
    rows = (
        (
            f"`--{each.name.replace('_', '-')}`",
            f"{getattr(assumed, each.name):,g}",
            each.metadata["unit"],
            each.metadata["what"],
        )
        for each in fields(assumed)
    )
    return _table(("parameter", "default", "unit", "what"), rows)


def _measured(measured: Measurements) -> str:
    rows = (
        (
            each.what,
            f"{each.value:,g}" if each.value < 1000 else f"{each.value:,.0f}",
            each.unit,
            f"`{each.command}`",
        )
        for each in measured.figures.values()
    )
    return _table(("what", "measured", "unit", "by"), rows)


def _host(assumed: Assumed, sampled: Assumed, measured: Measurements) -> str:
    columns = [host(each, measured) for each in (assumed, sampled)]
    rows = [
        ("read by BPF", *(f"{100 * each.bpf:.2f} %" for each in columns)),
        ("or by netlink", *(f"{100 * each.netlink:.2f} %" for each in columns)),
        ("spool, compress and send", *(f"{100 * each.shipping:.2f} %" for each in columns)),
        ("to Kafka", *(scaled(each.wire_bytes_per_second, "B/s") for each in columns)),
    ]
    return _table(("one host", *(f"1/{each.sample:,g} of the sockets" for each in (assumed, sampled))), rows)


def _sizes(assumed: Assumed, measured: Measurements, fleets: Sequence[int]) -> str:
    columns = [sizes(pops, assumed, measured) for pops in fleets]
    rows = [
        ("rows", *(scaled(each.rows_per_second, "/s") for each in columns)),
        ("protobuf, before compression", *(scaled(each.raw_bytes_per_second, "B/s") for each in columns)),
        ("into Kafka, compressed", *(scaled(each.wire_bytes_per_second, "B/s") for each in columns)),
        (
            f"Kafka's disks, {assumed.kafka_replicas:g} copies",
            *(scaled(each.kafka_bytes, "B") for each in columns),
        ),
        (
            f"`socket_samples`, disks, {assumed.store_replicas:g} copies",
            *(scaled(each.store_bytes, "B") for each in columns),
        ),
        (
            f"windows of {assumed.windows_days:g} days and histories, disks, {assumed.store_replicas:g} copies",
            *(scaled(each.windows_bytes, "B") for each in columns),
        ),
        *(
            (
                f"{what}, s of each {assumed.step:g} s on one machine",
                *(f"{getattr(each, name):,.1f}" for each in columns),
            )
            for what, name in (("loading", "ingest"), ("closing", "closing"), ("selecting", "selecting"))
        ),
        ("shards, of the measured machine's class", *(f"{each.machines:,}" for each in columns)),
    ]
    return _table(("", *(f"{pops:,} POPs" for pops in fleets)), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
