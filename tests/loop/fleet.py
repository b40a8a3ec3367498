"""The fleet of the loop test: two POPs, and the client prefixes that they serve. Data only."""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from tidegate_lab.shape import Shape


@dataclass(frozen=True)
class Pop:
    """A POP of one host; `own_prefixes` hold its service and its management addresses."""

    name: str
    own_prefixes: tuple[str, str]
    service: dict[int, str]  # by IP version
    management: str
    control: str  # the control node's address on the link to this POP

    @property
    def host(self):
        return f"{self.name}-edge1"


@dataclass(frozen=True)
class ClientPrefix:
    """A client prefix, and the link from its POP to its one client."""

    label: str
    pop: str
    prefix: str
    shape: Shape

    @property
    def network(self) -> IPv4Network | IPv6Network:
        return ip_network(self.prefix)

    @property
    def address(self):
        return str(self.network[10])

    @property
    def lossy(self):
        return self.shape.loss > 0


def access(rtt_ms: int, loss: float = 0.0, seed: int = 1) -> Shape:
    """50 Mbit/s towards the client, and a buffer of 50 ms."""
    return Shape(rate_bps=50_000_000, delay_ms=rtt_ms / 2, loss=loss, buffer_bytes=312_500, seed=seed)


POPS = (
    Pop(
        "ams1",
        ("203.0.113.0/25", "2001:db8:a::/48"),
        {4: "203.0.113.1", 6: "2001:db8:a::1"},
        "203.0.113.66",
        "203.0.113.65",
    ),
    Pop(
        "fra2",
        ("203.0.113.128/25", "2001:db8:b::/48"),
        {4: "203.0.113.129", 6: "2001:db8:b::1"},
        "203.0.113.194",
        "203.0.113.193",
    ),
)

CLIENTS = (
    ClientPrefix("lossy4", "ams1", "192.0.2.0/24", access(50, loss=0.03, seed=11)),
    ClientPrefix("near4", "ams1", "198.51.100.0/24", access(10)),
    ClientPrefix("near6", "ams1", "2001:db8:c:100::/56", access(20)),
    ClientPrefix("lossy6", "fra2", "2001:db8:d:100::/56", access(50, loss=0.03, seed=12)),
    ClientPrefix("near4a", "fra2", "198.18.4.0/24", access(10)),
    ClientPrefix("near4b", "fra2", "198.18.5.0/24", access(20)),
)

POLICY = """\
edition 2026.1
inventory "inventory"

select slow_clients {
  measure  delivery_rate by prefix /24 /56
  from     traffic client where bytes_acked >= 100 KB
  over     20s step 2s
  rank     bottom 20% of pop
  require  duty_cycle >= 60%
  require  flap_rate <= 30%
  require  windows >= 6
  require  samples >= 3 per window
}

apply bbr_for_slow_clients {
  to       slow_clients
  in       all
  set      congestion_control bbr
  when     transfer_size >= 100 KB
  fallback ungated
}
"""
