"""Which reader a collector uses on hosts that do not allow BPF, and what it says of that."""

import os
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from tidegate_edge.errors import Failure
from tidegate_edge.libbpf import library
from tidegate_edge.libbpf.iterators import load_iterator
from tidegate_edge.libbpf.library import Unavailable
from tidegate_edge.preflight import version_of
from tidegate_edge.sockets import iterator
from tidegate_edge.sockets.arena import Arena
from tidegate_edge.sockets.netlink import CONNECTED, EVERY
from tidegate_edge.sockets.reader import open_reader
from tidegate_edge.sockets.rows import Origin
from tidegate_edge.steer.bpf import steered

COLLECTOR = Path(sys.executable).with_name("tidegate-collector")
WITHOUT_BPF = ["setpriv", "--bounding-set", "-bpf,-perfmon,-sys_admin"]
ONLY_BPF = ["setpriv", "--bounding-set", "-all,+bpf,+perfmon"]
LACKING = "no BPF: it takes CAP_BPF and CAP_PERFMON, which this process lacks"


@pytest.fixture
def connection():
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as near,
        listener.accept()[0],
    ):
        yield near.getsockname()[1]


def once(*options, under=()):
    command = [*under, COLLECTOR, "once", "--json", *options]
    return subprocess.run(command, capture_output=True, check=False, text=True)


@pytest.mark.root
def test_without_the_capabilities_netlink_reads_and_says_why(connection):
    done = once(under=WITHOUT_BPF)
    assert (done.returncode, done.stderr) == (0, f"reader netlink: {LACKING}\n")
    assert f'"local_port": {connection}' in done.stdout


@pytest.mark.root
def test_bpf_on_demand_without_the_capabilities_fails():
    done = once("--reader", "bpf", under=WITHOUT_BPF)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (f"tidegate-collector: {LACKING}\nhelp: `--reader netlink` reads the same rows\n")


@pytest.mark.root
def test_two_capabilities_are_all_that_bpf_takes(connection):
    done = once("--reader", "bpf", under=ONLY_BPF)
    assert (done.returncode, done.stderr) == (0, "")
    assert f'"local_port": {connection}' in done.stdout


@pytest.mark.root
def test_auto_is_bpf_where_the_host_allows_it():
    reader = open_reader("auto", None, states=CONNECTED, tell=pytest.fail)
    assert reader.name == "bpf"
    reader.close()


@pytest.mark.root
def test_the_walk_looks_ahead_where_the_kernel_can():
    found = load_iterator(iterator.OBJECT, iterator.PROGRAMS, iterator.NEEDS)
    ahead = version_of(os.uname().release) >= (6, 2)
    assert found.program == ("write_rows_ahead" if ahead else "write_rows")
    found.unload()


@pytest.mark.root
def test_an_object_of_another_version_is_told_from_a_refused_one():
    with pytest.raises(Unavailable, match="built for another version of this package"):
        load_iterator(steered.OBJECT, ("write_today", "write_tomorrow"), iterator.NEEDS)


def test_states_without_a_row_in_the_iterator_are_netlinks():
    reader = open_reader("auto", None, states=EVERY, tell=pytest.fail)
    assert reader.name == "netlink"
    reader.close()
    done = once("--all-states", "--reader", "bpf")
    assert (done.returncode, done.stdout) == (2, "")
    assert "has no rows for listeners, TIME_WAIT and SYN_RECV" in done.stderr


def reason():
    said = []
    reader = open_reader("auto", None, states=CONNECTED, tell=said.append)
    assert reader.name == "netlink"
    reader.close()
    (line,) = said
    return line


def test_a_host_without_the_library(monkeypatch):
    library.bound.cache_clear()
    monkeypatch.setattr(library, "LIBRARY", "libbpf.so.99")
    try:
        assert reason() == "reader netlink: no BPF: libbpf.so.99 is not installed (Debian: libbpf1)"
    finally:
        library.bound.cache_clear()


def test_a_library_of_another_kind(monkeypatch):
    library.bound.cache_clear()
    monkeypatch.setattr(library, "LIBRARY", "libc.so.6")
    try:
        assert "libc.so.6 is older than 1.0" in reason()
    finally:
        library.bound.cache_clear()


def test_an_installation_without_the_object(monkeypatch, tmp_path):
    monkeypatch.setattr(iterator, "OBJECT", tmp_path / "sockets.bpf.o")
    assert (
        reason()
        == "reader netlink: no BPF: this installation has no sockets.bpf.o: it was built without clang"
    )


def test_an_object_that_is_none(monkeypatch, tmp_path):
    damaged = tmp_path / "sockets.bpf.o"
    damaged.write_bytes(b"no ELF")
    monkeypatch.setattr(iterator, "OBJECT", damaged)
    assert "no BPF: libbpf can't read the object" in reason()


needs_clang = pytest.mark.skipif(not shutil.which("clang"), reason="clang builds programs that are refused")
REFUSED = "return *(volatile char *)(1000000 + (char *)context);"
TAKEN = "return 0;"


def built(directory, **programs):
    """An object of iterators, by name and body."""
    functions = "".join(
        f'__attribute__((section("iter/tcp"), used)) int {name}(struct bpf_iter__tcp *context) {{ {body} }}\n'
        for name, body in programs.items()
    )
    source, path = directory / "sockets.bpf.c", directory / "sockets.bpf.o"
    source.write_text(
        '__attribute__((section("license"), used)) char terms[] = "GPL";\n'
        "struct bpf_iter__tcp { void *meta, *common; unsigned int uid; };\n" + functions
    )
    subprocess.run(["clang", "-target", "bpf", "-O2", "-g", "-c", source, "-o", path], check=True)
    return path


@pytest.mark.root
@needs_clang
def test_a_program_that_the_kernel_refuses_is_refused_in_the_verifiers_words(monkeypatch, tmp_path):
    monkeypatch.setattr(iterator, "OBJECT", built(tmp_path, write_rows_ahead=REFUSED, write_rows=REFUSED))
    said = reason()
    assert f"the kernel refuses the program (Linux {os.uname().release}; it takes 5.12): " in said
    assert "ctx" in said.partition(": ")[2]
    assert "off=1000000" in said


@pytest.mark.root
@needs_clang
def test_where_the_kernel_refuses_the_best_program_the_next_one_runs(tmp_path):
    path = built(tmp_path, best=REFUSED, good=TAKEN, last=TAKEN)
    found = load_iterator(path, ("best", "good", "last"), iterator.NEEDS)
    assert found.program == "good"
    os.close(found.start())
    found.unload()


def test_a_namespace_that_is_not_there_is_a_failure_for_any_reader():
    for choice in ("auto", "netlink"):
        with pytest.raises(Failure, match="no network namespace `nowhere`"):
            open_reader(choice, "nowhere", states=CONNECTED, tell=pytest.fail)


@pytest.mark.root
def test_what_bpf_cannot_finish_netlink_does_and_gives_no_socket_twice(monkeypatch):
    """As where the first socket of `bbr` appears whose state the kernel's BTF does not describe."""
    whole = iterator.BpfReader.poll

    def broken(self, *arguments, **options):
        yield next(whole(self, *arguments, **options))
        raise library.Unavailable("no state of bbr", iterator.NEEDS)

    monkeypatch.setattr(iterator.BpfReader, "poll", broken)
    told = []
    with ExitStack() as held:
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0), backlog=512))
        listener_port = listener.getsockname()[1]
        ends = [held.enter_context(socket.create_connection(listener.getsockname())) for _ in range(400)]
        ends += [held.enter_context(listener.accept()[0]) for _ in range(400)]
        reader = open_reader("auto", None, states=CONNECTED, tell=told.append)
        held.callback(reader.close)
        parts = [part.rows.copy() for part in reader.poll(Origin("ams1", "edge1"), Arena())]
    assert told == ["reader netlink: no BPF: no state of bbr"]
    assert len(parts[0]) == iterator.READ_ROWS
    rows = np.concatenate(parts)
    assert len(np.unique(rows["cookie"])) == len(rows)
    ours = rows[(rows["local_port"] == listener_port) | (rows["remote_port"] == listener_port)]
    assert len(ours) == len(ends)
