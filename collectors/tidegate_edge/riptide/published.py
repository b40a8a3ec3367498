"""What the published script did, to compare with: the windows of every socket that `ss` lists, by remote host.

Flores, Khakpour and Bedi, "Riptide: Jump-Starting Back-Office Connections in Cloud Systems", ICDCS 2016: at each
interval the mean congestion window of the open connections to each host goes into a weighted moving average, which is
moved between c_min and c_max and set as the initial window of a route to that host, until nothing was heard of the
host for a time. Nothing is left out, selected or held out.
"""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_network
from typing import Final

from tidegate_edge.errors import MISSING_PART, Failure
from tidegate_edge.steer.prefix import Prefix
from tidegate_edge.steer.steering import Learn

from .state import Mean, State
from .windows import fold

# A line of `ss -tia` with the peer's address, and the indented one below it with the window.
_PEER: Final = re.compile(r"^ESTAB\s+\d+\s+\d+\s+\S+\s+\[?([0-9a-f.:]+)[]%:]")
_WINDOW: Final = re.compile(r"\bcwnd:(\d+)")


def list_sockets() -> str:
    """What `ss -tia` prints, numeric.

    Raises:
        Failure: there is no `ss`, or it failed.
    """
    try:
        done = subprocess.run(["ss", "-tian"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failure(f"ss -tian: {error}", exit_code=MISSING_PART) from error
    return done.stdout


def windows_by_host(listed: str) -> Mapping[Prefix, Mean]:
    """The windows of established sockets by remote host, of what `ss` printed."""
    found: dict[str, Mean] = {}
    peer: str | None = None
    for line in listed.splitlines():
        if not line.startswith(("\t", " ")):
            head = _PEER.match(line)
            peer = head[1].removeprefix("::ffff:") if head else None  # IPv4 on a dual-stack socket
        elif peer is not None and (window := _WINDOW.search(line)):
            so_far = found.get(peer, Mean(0, 0))
            found[peer] = Mean(so_far.total + int(window[1]), so_far.count + 1)
    return {ip_network(host): mean for host, mean in found.items()}


def learn_as_published(state: State, listed: str, settings: Learn, now_us: int) -> State:
    """One interval as the script has it; what it claims are the windows of `state.learned`, all of them."""
    return fold(replace(state, settings=settings), windows_by_host(listed), settings, now_us)
