"""Real transfers to every client prefix, and what the kernel ran meanwhile."""

import time
from collections import Counter
from dataclasses import dataclass

from tidegate_lab.transfers import Client, Transfer, fetching

from .fleet import CLIENTS, POPS
from .sockets import algorithms_in_use

POLL_S = 0.2
# A lossy prefix has several transfers at a time, or a lookback would see too few for a median.
PARALLEL = {True: 3, False: 1}
PAUSE_S = 0.2


@dataclass(frozen=True)
class Traffic:
    """By client label: the transfers; by client label and algorithm: how often a poll saw a connection run it."""

    transfers: dict[str, list[Transfer]]
    algorithms: Counter[tuple[str, str]]


def traffic_for(network, seconds):
    """Transfers to all prefixes for a length of time."""
    end = time.monotonic() + seconds
    return _traffic(network, lambda _: time.monotonic() >= end)


def traffic_until(network, transfers, patience_s):
    """Transfers to all prefixes until each has completed so many, and was seen in a poll."""
    end = time.monotonic() + patience_s

    def enough(traffic):
        assert time.monotonic() < end, {label: len(done) for label, done in traffic.transfers.items()}
        seen = {label for label, _ in traffic.algorithms}
        return all(label in seen and len(done) >= transfers for label, done in traffic.transfers.items())

    return _traffic(network, enough)


def _traffic(network, enough):
    labels = [client.label for client in CLIENTS for _ in range(PARALLEL[client.lossy])]
    seen = Counter()
    with fetching([_client(network, label) for label in labels]) as running:
        while True:
            traffic = Traffic({label: [] for label in labels}, seen)
            for label, done in zip(labels, running.completed(), strict=True):
                traffic.transfers[label] += done
            if enough(traffic):
                return traffic
            seen.update(algorithms_in_use(network))
            time.sleep(POLL_S)


def _client(network, label):
    client = next(client for client in CLIENTS if client.label == label)
    service = next(pop.service for pop in POPS if pop.name == client.pop)[client.network.version]
    host = service if client.network.version == 4 else f"[{service}]"
    return Client(network.clients[label], f"http://{host}/object", pause_s=PAUSE_S)
