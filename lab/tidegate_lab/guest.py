"""The first and only process of a User Mode Linux: a sender of its own kernel, which can be stopped as a whole.

`python -m tidegate_lab.guest MODULES` is what `tidegate_lab.uml` starts there. A client says in one line which
algorithm it wants, and `all` or `some`: bytes as fast as they go, or bursts with pauses. Each 50 ms a line on the
console tells of the sending socket what the signature of CPU-limited BBR is made of.
"""

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final

import numpy as np
from tidegate_edge.schemas.rows import ROW
from tidegate_edge.sockets import kernel
from tidegate_edge.sockets.decode import fill_rows, find_sockets
from tidegate_edge.sockets.netlink import MAX_DATAGRAM, SocketDiag
from tidegate_edge.starved import signs

PORT: Final = 9000
ADDRESS: Final = "198.18.20.2"
GATEWAY: Final = "198.18.20.1"
SAMPLE: Final = "sample "
READY: Final = "the guest is ready"
_MODULES: Final = ("net/ipv4/tcp_bbr.ko", "net/sched/sch_fq.ko")
_FINIT_MODULE: Final = 313  # x86-64
_ESTABLISHED: Final = 1 << 1
_COMMANDS: Final = (
    "mount -t proc proc /proc",
    "ip link set lo up",
    f"ip address add {ADDRESS}/24 dev vec0",
    "ip link set vec0 txqueuelen 1000 up",
    f"ip route add default via {GATEWAY}",
    "sysctl -qw net.ipv4.tcp_no_metrics_save=1",
)


def main(modules: Path) -> None:
    """Set the kernel up, and serve for ever."""
    for command in _COMMANDS:
        subprocess.run(command.split(), check=True)
    for module in _MODULES:
        _insert(modules / module)
    listener = socket.create_server(("", PORT))
    threading.Thread(target=_sample, daemon=True).start()
    print(READY, flush=True)
    while True:
        threading.Thread(target=_send, args=(listener.accept()[0],), daemon=True).start()


def _insert(module: Path) -> None:
    with module.open("rb") as file:
        if ctypes.CDLL(None, use_errno=True).syscall(_FINIT_MODULE, file.fileno(), b"", 0):
            raise OSError(ctypes.get_errno(), f"{module} cannot be inserted")


def _send(connection: socket.socket) -> None:
    with connection:
        algorithm, manner = connection.makefile().readline().split()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
        block = bytes(1 << 16 if manner == "all" else 20_000)
        try:
            while True:
                connection.sendall(block)
                if manner != "all":
                    time.sleep(0.02)
        except OSError:
            return


def _sample() -> None:
    diag, buffer = SocketDiag(), bytearray(4 * MAX_DATAGRAM)
    words = np.frombuffer(buffer, "<u4")
    while True:
        time.sleep(0.05)
        for datagrams in diag.dump(_ESTABLISHED, buffer, kernel.WANTED_ATTRIBUTES):
            sockets = find_sockets(words, datagrams)
            rows = np.zeros(len(sockets.starts), ROW)
            fill_rows(rows, sockets)
            for row in rows[rows["bytes_sent"] > 0]:
                found = signs(row.reshape(1))
                path = int(row["bbr_bw"]) * int(row["bbr_min_rtt_us"]) / 1e6
                flying = int(row["unacked"]) * int(row["snd_mss"])
                share = flying / path if path else None
                print(SAMPLE + json.dumps([found.bbr, found.starved, share]), flush=True)


if __name__ == "__main__":
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    main(Path(sys.argv[1]))
