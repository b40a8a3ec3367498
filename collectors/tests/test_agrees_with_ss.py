"""Rows against `ss`, field by field: on recorded kernels, and on sockets of this host."""

import ipaddress
import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

COLLECTOR = Path(sys.executable).with_name("tidegate-collector")
CAPTURES = Path(__file__).parents[3] / "shared" / "data" / "netlink"
WITNESSED = [
    (f"{kernel}_tcp_{count}_sockets.pcap", f"{kernel}_ss_tcp_info_a_{count}")
    for kernel in ("5_4_281", "6_1_103", "6_10_3")
    for count in (10, 100)
]
STATES = {"ESTAB": "ESTABLISHED"}


def milliseconds(text):
    return round(float(text) * 1000)


def bits(text):
    return int(text.removesuffix("bps")) // 8


# Row field: (what ss prints for it, how to read it). What ss leaves out when it is zero has a default.
PRINTED = {
    "uid": (r" uid:(\d+)", int, 0),
    "inode": (r" ino:(\d+)", int, None),
    "send_wscale": (r" wscale:(\d+),\d+", int, None),
    "receive_wscale": (r" wscale:\d+,(\d+)", int, None),
    "rto_us": (r" rto:([\d.]+)", milliseconds, None),
    "rtt_us": (r" rtt:([\d.]+)/", milliseconds, None),
    "rttvar_us": (r" rtt:[\d.]+/([\d.]+)", milliseconds, None),
    "snd_mss": (r" mss:(\d+)", int, None),
    "pmtu": (r" pmtu:(\d+)", int, None),
    "snd_cwnd": (r" cwnd:(\d+)", int, None),
    "snd_ssthresh": (r" ssthresh:(\d+)", int, None),
    "bytes_sent": (r" bytes_sent:(\d+)", int, 0),
    "bytes_retrans": (r" bytes_retrans:(\d+)", int, 0),
    "bytes_acked": (r" bytes_acked:(\d+)", int, 0),
    "bytes_received": (r" bytes_received:(\d+)", int, 0),
    "segs_out": (r" segs_out:(\d+)", int, 0),
    "segs_in": (r" segs_in:(\d+)", int, 0),
    "data_segs_out": (r" data_segs_out:(\d+)", int, 0),
    "data_segs_in": (r" data_segs_in:(\d+)", int, 0),
    "pacing_rate": (r" pacing_rate (\d+bps)", bits, None),
    "delivery_rate": (r" delivery_rate (\d+bps)", bits, None),
    "delivered": (r" delivered:(\d+)", int, 0),
    "delivered_ce": (r" delivered_ce:(\d+)", int, 0),
    "busy_time_us": (r" busy:(\d+)ms", lambda text: int(text) * 1000, 0),
    "unacked": (r" unacked:(\d+)", int, 0),
    "retrans": (r" retrans:(\d+)/", int, 0),
    "total_retrans": (r" retrans:\d+/(\d+)", int, 0),
    "lost": (r" lost:(\d+)", int, 0),
    "notsent_bytes": (r" notsent:(\d+)", int, 0),
    "min_rtt_us": (r" minrtt:([\d.]+)", milliseconds, None),
    "snd_wnd": (r" snd_wnd:(\d+)", int, None),
    "delivery_rate_app_limited": (r" (app_limited)", lambda _: 1, 0),
    "congestion_control": (r" (cubic|reno|bbr|dctcp|vegas) ", str, None),
    "bbr_bw": (r" bbr:\(bw:(\d+bps)", bits, None),
    "bbr_min_rtt_us": (r" bbr:\(bw:\d+bps,mrtt:([\d.]+)", milliseconds, None),
}


def endpoint(text):
    address, port = text.rsplit(":", 1)
    address = "::" if address == "*" else address.strip("[]").partition("%")[0]
    parsed = ipaddress.ip_address(address)
    mapped = getattr(parsed, "ipv4_mapped", None)
    return str(mapped or parsed), 0 if port == "*" else int(port)


def sockets_of(text):
    """What ss printed, by ports and cookie; a socket's second line begins with a tab where it has one."""
    lines = [line for line in text.splitlines() if not line.startswith("State ")]
    joined = re.sub(r"\n[ \t]+", " ", "\n".join(lines)).splitlines()
    found = {}
    for line in joined:
        state, receive_queue, send_queue, local, remote, *_ = line.split()
        words = f" {line} "
        cookie = int(re.search(r" sk:([0-9a-f]+)", words)[1], 16)
        found[endpoint(local)[1], endpoint(remote)[1], cookie] = {
            "state": STATES.get(state, state.replace("-", "_")),
            "receive_queue": int(receive_queue),
            "send_queue": int(send_queue),
            "local_address": endpoint(local)[0],
            "remote_address": endpoint(remote)[0],
            "line": words,
        }
    return found


def shown(printed):
    """The row fields that ss tells of a socket, explicitly or by leaving them out."""
    fields = {name: value for name, value in printed.items() if name != "line"}
    has_info = " rto:" in printed["line"]
    for name, (pattern, read, default) in PRINTED.items():
        match = re.search(pattern, printed["line"])
        if match:
            fields[name] = read(match[1])
        elif default is not None and has_info:
            fields[name] = default
    return fields


def disagreements(row, printed):
    """Fields that both show and that differ."""
    seen = {**row, "busy_time_us": row["busy_time_us"] // 1000 * 1000}  # ss prints milliseconds
    return {name: (seen[name], value) for name, value in shown(printed).items() if seen[name] != value}


def key(row):
    return row["local_port"], row["remote_port"], row["cookie"]


def rows_of(*arguments):
    command = [COLLECTOR, *arguments, "--json", "--full-addresses"]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return [json.loads(line) for line in printed.splitlines()]


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="the captures of other kernels lie beside the repository")
@pytest.mark.parametrize(("capture", "witness"), WITNESSED)
def test_a_recorded_kernel_reads_as_ss_read_it(capture, witness):
    printed = sockets_of((CAPTURES / witness).read_text())
    rows = {key(row): row for row in rows_of("decode", str(CAPTURES / capture))}
    assert rows.keys() == printed.keys()
    assert {one: disagreements(rows[one], printed[one]) for one in rows} == {one: {} for one in rows}
    connected = [one for one in rows if rows[one]["state"] == "ESTABLISHED"]
    assert all(len(shown(printed[one])) > 30 for one in connected)


@pytest.fixture
def traffic():
    """Connections at rest that have carried data both ways, in every form of address."""
    ends = []
    for family, bind, connect in (
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET6, "::1", "::1"),
        (socket.AF_INET6, "::", "127.0.0.2"),  # IPv4 on a dual-stack socket
    ):
        dual = bind == "::"
        with socket.create_server((bind, 0), family=family, dualstack_ipv6=dual) as listener:
            near = socket.create_connection((connect, listener.getsockname()[1]))
            far = listener.accept()[0]
        near.sendall(b"x" * 50_000)
        received = 0
        while received < 50_000:
            received += len(far.recv(65536))
        far.sendall(b"y" * 700)
        assert len(near.recv(700, socket.MSG_WAITALL)) == 700
        ends += [near, far]
    yield ends
    for end in ends:
        end.close()


@pytest.mark.parametrize("reader", ["netlink", pytest.param("bpf", marks=pytest.mark.root)])
def test_this_kernel_reads_as_ss_reads_it(traffic, reader):
    ports = {end.getsockname()[1] for end in traffic}

    def ours(sockets):
        return {one: sockets[one] for one in sockets if {one[0], one[1]} & ports}

    # Until the sockets stood still between two looks of ss, so at the collector's look too.
    for _ in range(20):
        before = ours(ss())
        rows = ours({key(row): row for row in rows_of("once", "--reader", reader)})
        after = ours(ss())
        if {one: shown(before[one]) for one in before} == {one: shown(after[one]) for one in after}:
            break
    assert len(rows) == len(traffic)
    assert {one: disagreements(rows[one], after[one]) for one in rows} == {one: {} for one in rows}


def ss():
    return sockets_of(subprocess.check_output(["ss", "-tieOnH"], text=True))
