"""Memory that is lent through a pipe arrives whole, also where a sandbox forbids to lend it."""

import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tidegate.telemetry.page_pipe import write_pages

SYSTEM_CALL = {"x86_64": 278, "aarch64": 75}  # vmsplice: asm/unistd_64.h, asm-generic/unistd.h


def arrived(*parts):
    reading, writing = os.pipe()
    with ThreadPoolExecutor(1) as threads, os.fdopen(reading, "rb") as reader:
        written = threads.submit(write_and_close, writing, parts)
        found = reader.read()
        written.result()
    return found


def write_and_close(pipe, parts):
    try:
        write_pages(pipe, [memoryview(part) for part in parts])
    finally:
        os.close(pipe)


@settings(deadline=None)
@given(st.integers(0, 3 * 2**20), st.lists(st.integers(0, 3 * 2**20), max_size=20), st.integers(0, 5000))
def test_all_bytes_arrive_in_their_order(size, cuts, begin):
    data = memoryview(bytes(range(251)) * (size // 251 + begin // 251 + 2))[begin : begin + size]
    bounds = [0, *sorted(min(cut, size) for cut in cuts), size]
    assert arrived(*(data[first:end] for first, end in pairwise(bounds))) == data


def test_a_reader_that_goes_ends_the_writing():
    reading, writing = os.pipe()
    with ThreadPoolExecutor(1) as threads:
        written = threads.submit(write_and_close, writing, [bytes(2**22)])
        assert os.read(reading, 10) == bytes(10)
        os.close(reading)
        with pytest.raises(BrokenPipeError):
            written.result(timeout=60)


FORBIDDEN = """
import ctypes, errno, struct, sys
sys.path.insert(0, sys.argv[1])
from tidegate.telemetry.page_pipe import write_pages
from test_page_pipe import SYSTEM_CALL, arrived
import platform
libc = ctypes.CDLL(None, use_errno=True)
number = SYSTEM_CALL[platform.machine()]
# linux/filter.h, linux/seccomp.h: load the call's number; EPERM for this one, all others pass
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | errno.EPERM), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
program = struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS"
assert libc.prctl(22, 2, program, 0, 0) == 0, "PR_SET_SECCOMP, SECCOMP_MODE_FILTER"
assert libc.vmsplice(1, None, 0, 0) == -1 and ctypes.get_errno() == errno.EPERM
data = bytes(range(256)) * 9000
assert arrived(data) == data
print("arrived")
"""


@pytest.mark.skipif(platform.machine() not in SYSTEM_CALL, reason="the call's number is not known here")
def test_where_a_sandbox_forbids_to_lend_the_bytes_are_copied():
    ran = subprocess.run(
        [sys.executable, "-c", FORBIDDEN, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.stdout, ran.returncode) == ("arrived\n", 0), ran.stderr
