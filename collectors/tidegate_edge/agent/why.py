"""What applied to the connections of one peer: the claim, the settings, and what each socket really has."""

from contextlib import closing
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

import numpy as np

from tidegate_edge.errors import BAD_INPUT, MISSING_PART, Failure
from tidegate_edge.riptide.filter import select_remote
from tidegate_edge.sockets.addresses import FULL, as_text
from tidegate_edge.sockets.kernel import STATES
from tidegate_edge.sockets.netlink import CONNECTED, MAX_DATAGRAM, Broken, SocketDiag
from tidegate_edge.sockets.rows import Origin, make_rows
from tidegate_edge.steer.backend import Given, Witness
from tidegate_edge.steer.claims import ATTRIBUTES, Settings
from tidegate_edge.steer.prefix import Prefix, PrefixIndex, order
from tidegate_edge.steer.steering import Claim

from .protocol import Document
from .reconcile import Reconciler

SOCKETS_SHOWN: Final = 1000
WHOLE_ADDRESSES: Final = Origin("", "", FULL)


@dataclass(frozen=True, slots=True)
class Connection:
    """What one socket has now, as the kernel says.

    Attributes:
        local: address and port.
        remote: address and port.
        state: of TCP.
        congestion_control: the algorithm that it runs.
        cwnd: segments.
        bytes_acked: by the peer since it was opened.
        rtt_us: smoothed.
        retransmitted: segments since it was opened.
        cookie: the kernel's name of it.
    """

    local: str
    remote: str
    state: str
    congestion_control: str
    cwnd: int
    bytes_acked: int
    rtt_us: int
    retransmitted: int
    cookie: int


def peer_address(text: str) -> IPv4Address | IPv6Address:
    """The address of which `why` tells; IPv4 as a dual-stack socket shows it is IPv4.

    Raises:
        Failure: it is none.
    """
    try:
        address = ip_address(text)
    except ValueError as error:
        raise Failure(str(error), help="write it as in `ss`: 198.51.100.7", exit_code=BAD_INPUT) from error
    return (address.version == 6 and address.ipv4_mapped) or address


def why_document(address: IPv4Address | IPv6Address, reconciler: Reconciler) -> Document:
    """What `why` prints.

    Raises:
        Failure: the kernel does not answer.
    """
    host = ip_network(address)
    held = reconciler.held()
    index = PrefixIndex[tuple[Prefix, Settings]](
        (order(prefix), (prefix, settings)) for prefix, settings in held.settings.items()
    )
    found = index.nearest(order(host))
    steering = reconciler.steering
    claims = PrefixIndex[Claim](
        (order(claim.prefix), claim) for claim in (steering.claims if steering else ())
    )
    covering = tuple(claims.covering(order(host)))
    learned = PrefixIndex[Prefix]((order(prefix), prefix) for prefix in reconciler.learned).nearest(
        order(host)
    )
    seen = _connections(address)
    backend = reconciler.backend
    given = {each.cookie: each for each in backend.why(address)} if isinstance(backend, Witness) else {}
    return {
        "peer": str(address),
        "generation": steering.generation if steering else None,
        "backend": reconciler.backend.name,
        "attached": held.attached,
        "prefix": str(found[0]) if found else None,
        "settings": found[1].stated() if found else {},
        "min_bytes": found[1].min_bytes if found else 0,
        "because": {name: _source(name, covering, learned) for name in (found[1].stated() if found else ())},
        "claims": [str(claim.prefix) for claim in covering],
        "connections": [asdict(each) | {"given": _given(given.get(each.cookie))} for each in seen],
    }


def why_lines(document: Document) -> list[str]:
    """The same for people."""
    if document["prefix"] is None:
        lines = [f"{document['peer']}: nothing of ours applies; the host's own settings do"]
    else:
        source = f"generation {document['generation'] or 'none'}, by {document['backend']}"
        lines = [f"{document['peer']}: {document['prefix']} of {source}"]
        after = f" from {document['min_bytes']} bytes" if document["min_bytes"] else ""
        lines += [
            f"  {name} {value}{after if name == ATTRIBUTES[0] else ''}: {document['because'][name]}"
            for name, value in document["settings"].items()
        ]
    lines += [
        f"  {each['local']} -> {each['remote']} {each['state']} {each['congestion_control']} "
        f"cwnd {each['cwnd']} acked {each['bytes_acked']}{_given_words(each['given'])}"
        for each in document["connections"]
    ]
    return lines if document["connections"] else [*lines, "  no connection is open"]


def _given_words(given: Document | None) -> str:
    if given is None:
        return ""
    words = f"window {given['window']}, algorithm {given['algorithm']}"
    return f" (generation {given['generation']}, {given['prefix']}: {words})"


def _source(name: str, covering: tuple[Claim, ...], learned: Prefix | None) -> str:
    """Where a setting comes from; a learned window stands before a claim that is as long or shorter."""
    claim = next((each for each in covering if getattr(each, name) is not None), None)
    if name == "initcwnd" and learned and (claim is None or learned.prefixlen >= claim.prefix.prefixlen):
        return f"learned for {learned}"
    return f"claimed for {claim.prefix}" if claim else "offered to what is learned toward"


def _given(given: Given | None) -> Document | None:
    """What the backend gave the connection; None where it keeps no such memory, or gave it nothing."""
    if given is None:
        return None
    return {
        "generation": given.generation,
        "prefix": str(given.prefix),
        "settings": given.settings.stated(),
        "min_bytes": given.settings.min_bytes,
        "window": given.window,
        "algorithm": given.algorithm,
        "bytes_before_switch": given.bytes_before,
    }


def _connections(address: IPv4Address | IPv6Address) -> list[Connection]:
    """Its connections in this network namespace: the kernel selects them, however many others there are."""
    buffer = bytearray(4 * MAX_DATAGRAM)
    words = np.frombuffer(buffer, "<u4")
    found: list[Connection] = []
    with closing(SocketDiag()) as diag:
        try:
            for datagrams in diag.dump(
                CONNECTED, buffer, filters=select_remote([ip_network(address)]).attribute
            ):
                rows = make_rows(words, datagrams, WHOLE_ADDRESSES, observed_at_ns=0).rows
                found += map(_connection, rows[: SOCKETS_SHOWN - len(found)])
        except Broken as broken:
            raise Failure(f"the list of connections was lost: {broken}", exit_code=MISSING_PART) from broken
    return found


def _connection(row: np.void) -> Connection:
    def end(side: str) -> str:
        text = as_text(row[f"{side}_address"].tobytes(), int(row[f"{side}_prefix_length"]))
        return f"[{text}]:{row[f'{side}_port']}" if ":" in text else f"{text}:{row[f'{side}_port']}"

    return Connection(
        local=end("local"),
        remote=end("remote"),
        state=STATES[int(row["state"])],
        congestion_control=row["congestion_control"].decode("ascii", "replace"),
        cwnd=int(row["snd_cwnd"]),
        bytes_acked=int(row["bytes_acked"]),
        rtt_us=int(row["rtt_us"]),
        retransmitted=int(row["total_retrans"]),
        cookie=int(row["cookie"]),
    )
