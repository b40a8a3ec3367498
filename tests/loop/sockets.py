"""Which algorithm the kernel runs for each client prefix, as `ss` sees it."""

from collections import Counter
from ipaddress import ip_address

from tidegate_lab.namespaces import run

from .fleet import CLIENTS

ALGORITHMS = {"cubic", "bbr", "reno"}


def algorithms_in_use(network):
    """Counts of (client's label, algorithm) over the connections to nginx that are established now."""
    seen = Counter()
    for namespace in network.pops.values():
        table = run("ip", "netns", "exec", namespace, "ss", "-HtinO", "state", "established", "sport = :80")
        for line in table.splitlines():
            _, _, _, peer, *information = line.split()
            address = ip_address(peer.rpartition(":")[0].strip("[]"))
            label = next(client.label for client in CLIENTS if address in client.network)
            (algorithm,) = ALGORITHMS & set(information)
            seen[label, algorithm] += 1
    return seen
