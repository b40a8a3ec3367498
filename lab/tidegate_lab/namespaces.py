"""Network namespaces that are gone when their block is left, with every process in them."""

import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from tidegate_lab.afterwards import afterwards

# Every transfer starts from the same state, and no receiver's window is the limit (its default of 128 KiB is, for
# an initcwnd over 50). No link-local addresses: router solicitations would be packets that nobody sent.
SYSCTLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "net.ipv4.tcp_no_metrics_save": "1",
        "net.ipv4.tcp_slow_start_after_idle": "0",
        "net.ipv4.tcp_rmem": "4096 1048576 33554432",
        "net.ipv6.conf.default.addr_gen_mode": "1",
    }
)

_DELETE: Final = 'ip netns pids "$1" | xargs -r kill -KILL; exec ip netns delete "$1"'


@contextmanager
def namespace(
    label: str, addresses: Sequence[str] = (), sysctls: Mapping[str, str] = MappingProxyType({})
) -> Iterator[str]:
    """A network namespace with its loopback up.

    Args:
        label: what the name ends in, for people; the name itself is unique.
        addresses: with prefix length; they go on the loopback.
        sysctls: on top of `SYSCTLS`.

    Yields:
        The name, as `ip netns` knows it.

    Raises:
        subprocess.CalledProcessError: not root, or the kernel refused an address or a sysctl.
    """
    name = f"tidegate-{secrets.token_hex(3)}-{label}"
    run("ip", "netns", "add", name)
    with afterwards("sh", "-c", _DELETE, "delete", name):
        settings = [f"{key}={value}" for key, value in {**SYSCTLS, **sysctls}.items()]
        run("ip", "netns", "exec", name, "sysctl", "--quiet", "--write", *settings)
        configure(name, ["link set lo up", *(f"address add {address} dev lo" for address in addresses)])
        yield name


def configure(name: str, commands: Sequence[str]) -> None:
    """Run `ip` commands, each without the word `ip`, in the namespace `name`; the first that fails ends them.

    Raises:
        subprocess.CalledProcessError: with what `ip` said in `stderr`.
    """
    run("ip", "-n", name, "-batch", "-", stdin="".join(f"{command}\n" for command in commands))


def run(*command: str, stdin: str = "") -> str:
    """Run a command to its end and return its standard output.

    Raises:
        subprocess.TimeoutExpired: it was killed since it did not end within a minute.
        subprocess.CalledProcessError: it failed; its standard error is a note on the exception.
    """
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)
    try:
        done.check_returncode()
    except subprocess.CalledProcessError as error:
        error.add_note(done.stderr)
        raise
    return done.stdout
