"""Damaged netlink buffers by the thousand: none may crash, hang, or give a row that its bytes do not explain.

`TIDEGATE_FUZZ=1000000 pytest collectors/tests/test_netlink_fuzz.py` for a million of them.
"""

import os
import random
import struct
from pathlib import Path

import numpy as np
import pytest
from tidegate_edge.sockets.addresses import FULL
from tidegate_edge.sockets.capture import read_capture
from tidegate_edge.sockets.rows import Origin, make_rows

BUFFERS = int(os.environ.get("TIDEGATE_FUZZ", "20000"))
SEED = int(os.environ.get("TIDEGATE_FUZZ_SEED", "4"))
CAPTURES = Path(__file__).parents[3] / "shared" / "data" / "netlink"
ORIGIN = Origin("ams1", "edge1", FULL)

AT_ONCE = 500
MESSAGES = 3
HEADER, COOKIE, SHORTEST = 16, 60, 88  # nlmsghdr; idiag_cookie; nlmsghdr and inet_diag_msg


def message(draw, cookie):
    """A socket of a kernel that knows some of the attributes."""
    attributes = b""
    for kind, length in draw.sample([(2, 280), (2, 232), (16, 20), (4, 4), (7, 36), (21, 8), (15, 1)], 4):
        payload = b"bbr\0" if kind == 4 else draw.randbytes(length)
        attributes += struct.pack("<HH", 4 + len(payload), kind) + payload + bytes(-len(payload) % 4)
    body = struct.pack("<BBBB", draw.choice((2, 10)), draw.randint(1, 11), 0, 0) + draw.randbytes(40)
    body += struct.pack("<Q", cookie) + draw.randbytes(20)
    return struct.pack("<IHHII", HEADER + len(body) + len(attributes), 20, 2, 77, 0) + body + attributes


def walk(buffer):
    """Begin and end of each message, as netlink(7) says it, until one does not fit."""
    at = 0
    while at + HEADER <= len(buffer):
        (length,) = struct.unpack_from("<I", buffer, at)
        if length < HEADER or at + length > len(buffer):
            return
        yield at, at + length
        at += (length + 3) & ~3


def recorded():
    """Messages of real kernels."""
    if not CAPTURES.is_dir():
        return []
    found = []
    for name in ("5_4_281_tcp_100_sockets", "6_1_103_tcp_100_sockets", "6_10_3_tcp_100_sockets"):
        for datagram in read_capture(CAPTURES / f"{name}.pcap"):
            found += [
                datagram.data[at:end]
                for at, end in walk(datagram.data)
                if end - at >= SHORTEST and datagram.data[at + 4] == 20
            ]
    return found


def with_cookie(raw, cookie):
    return raw[:COOKIE] + struct.pack("<Q", cookie) + raw[COOKIE + 8 :] + bytes(-len(raw) % 4)


def damaged(draw, buffer):
    """The buffer with some bytes changed, cut or moved, and the first of them."""
    hit = bytearray(buffer)
    first = draw.randrange(len(hit))
    match draw.randrange(5):
        case 0:
            del hit[first:]
        case 1:
            first = draw.choice([at for at, _ in walk(buffer)])  # a message's length
            hit[first : first + 4] = struct.pack(
                "<I", draw.choice((0, 1, 15, 16, 71, 88, 1 << 16, 2**32 - 1))
            )
        case 2:
            del hit[first : first + draw.randint(1, 64)]
        case 3:
            hit[first:first] = draw.randbytes(draw.randint(1, 64))
        case _:
            places = sorted(draw.randrange(len(hit)) for _ in range(draw.randint(1, 8)))
            first = places[0]
            for place in places:
                hit[place] ^= draw.randint(1, 255)
    return bytes(hit), first


def rows_of(buffers, known=None):
    words, places, at = bytearray(), [], 0
    for buffer in buffers:
        words += buffer + bytes(-len(buffer) % 4)
        places.append((at, at + len(buffer)))
        at = len(words)
    return make_rows(np.frombuffer(bytes(words), "<u4"), places, ORIGIN, 1, known=known).rows


def decode(buffers):
    rows = rows_of(buffers)
    return {int(row["cookie"]): row.tobytes() for row in rows}, len(rows)


def cookies_in(buffer):
    return [
        struct.unpack_from("<Q", buffer, at + COOKIE)[0] for at, end in walk(buffer) if end - at >= SHORTEST
    ]


@pytest.mark.timeout(3600)
def test_damage_is_left_out_or_explained_and_never_spreads():
    draw = random.Random(SEED)
    real = recorded()
    known = {}
    for _ in range(-(-BUFFERS // AT_ONCE)):
        whole = []
        for _ in range(AT_ONCE):
            parts = []
            for _ in range(MESSAGES):
                cookie = draw.getrandbits(63)
                kernel = real and draw.random() < 0.5
                parts.append(with_cookie(draw.choice(real), cookie) if kernel else message(draw, cookie))
            whole.append(b"".join(part + bytes(-len(part) % 4) for part in parts))
        before, count = decode(whole)
        assert len(before) == count > AT_ONCE  # damage has something to hit
        hit = [damaged(draw, buffer) for buffer in whole]
        after, _ = decode([buffer for buffer, _ in hit])
        with_memory = rows_of([buffer for buffer, _ in hit], known)
        assert sorted(row.tobytes() for row in with_memory) == sorted(
            row.tobytes() for row in rows_of([buffer for buffer, _ in hit])
        )
        explained = {cookie for buffer, _ in hit for cookie in cookies_in(buffer)}
        assert after.keys() <= explained
        for (_, first), buffer in zip(hit, whole, strict=True):
            for at, end in walk(buffer):
                cookie = struct.unpack_from("<Q", buffer, at + COOKIE)[0]
                if end <= first and cookie in before:
                    assert after[cookie] == before[cookie]
    assert known  # and so was used
