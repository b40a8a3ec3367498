"""The fleet's network: a namespace for the control node, each POP and each client, and the links between them."""

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tidegate_lab.afterwards import afterwards
from tidegate_lab.link import End, Link, link
from tidegate_lab.namespaces import configure, namespace, run
from tidegate_lab.shape import Shape

from .fleet import CLIENTS, POPS

ALLOWED = "net.ipv4.tcp_allowed_congestion_control"


@dataclass(frozen=True)
class Network:
    """Names of the namespaces by what is in them, and the running links by client."""

    control: str
    pops: dict[str, str]
    clients: dict[str, str]
    links: dict[str, Link]


@contextmanager
def network():
    """The whole network; every POP's default algorithm is cubic."""
    with ExitStack() as stack:
        stack.enter_context(allowed("cubic", "bbr"))
        control = stack.enter_context(namespace("control"))
        pops, clients, links = {}, {}, {}
        for pop in POPS:
            service = [f"{address}/{32 if version == 4 else 128}" for version, address in pop.service.items()]
            pops[pop.name] = stack.enter_context(
                namespace(pop.name, service, {"net.ipv4.tcp_congestion_control": "cubic"})
            )
            connect(control, pop.control, pops[pop.name], pop.management, device=pop.name)
        for client in CLIENTS:
            clients[client.label] = stack.enter_context(namespace(client.label))
            near = End(pops[client.pop], client.label, routes=(client.prefix,))
            default, length = ("0.0.0.0/0", 32) if client.network.version == 4 else ("::/0", 128)
            far = End(clients[client.label], client.pop, (f"{client.address}/{length}",), (default,))
            back = Shape(delay_ms=client.shape.delay_ms)
            links[client.label] = stack.enter_context(link(near, far, client.shape, back))
        yield Network(control, pops, clients, links)


def connect(control, control_address, pop, pop_address, device):
    """A plain link for management."""
    configure(control, [f"link add {device} type veth peer name control netns {pop}"])
    configure(control, [f"address add {control_address}/30 dev {device}", f"link set {device} up"])
    configure(pop, [f"address add {pop_address}/30 dev control", "link set control up"])


@contextmanager
def allowed(*algorithms):
    """A namespace may have as its default only what the host allows: allow these while the block runs."""
    before = run("sysctl", "-n", ALLOWED).split()
    with afterwards("sysctl", "-qw", f"{ALLOWED}={' '.join(before)}"):
        run("sysctl", "-qw", f"{ALLOWED}={' '.join(dict.fromkeys([*before, *algorithms]))}")
        yield
