"""The loader killed, pins taken away by a stranger, the cgroup gone: connections go on."""

import ctypes
import signal
import socket
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest
from tidegate_edge.libbpf import descriptors
from tidegate_edge.sockets.netns import inside
from tidegate_edge.steer.bpf import Unavailable
from tidegate_edge.steer.bpf.pins import PINS

ECHO = """
import socket
listener = socket.create_server(("::", 80), family=socket.AF_INET6, dualstack_ipv6=True)
held = []
while True:
    held.append(listener.accept()[0])
"""
CONNECT = """
import socket, struct, sys, threading
near = socket.socket()
threading.Thread(target=lambda: (near.connect((sys.argv[1], 80)), print("connected", flush=True))).start()
while struct.unpack_from("=I", near.getsockopt(6, socket.TCP_INFO, 104), 100)[0] < 2: pass
print("lost two", flush=True)
threading.Event().wait()
"""
LISTED = "198.51.100.7"


@pytest.fixture
def server(ground):
    with ground.running(sys.executable, "-c", ECHO):
        ground.connect("203.0.113.7").close()
        yield


def window(ground):
    with ground.connect(LISTED) as connection:
        return ground.window_and_algorithm(connection)[0]


def identities(kind):
    """Of all programs, maps or links in the kernel (BPF_PROG_GET_NEXT_ID and its like)."""
    libbpf = ctypes.CDLL("libbpf.so.1")
    found, following = set(), ctypes.c_uint32(0)
    while getattr(libbpf, f"bpf_{kind}_get_next_id")(following, ctypes.byref(following)) == 0:
        found.add(following.value)
    return found


def of_ours(pins):
    """Identities of what is pinned."""
    found = {"prog": set(), "map": set(), "link": set()}
    for path in pins.iterdir():
        with descriptors.closing(descriptors.get(path)) as descriptor:
            match path.name:
                case "program":
                    found["prog"].add(descriptors.program_info(descriptor).identity)
                case "link":
                    info = ctypes.create_string_buffer(64)
                    ctypes.CDLL("libbpf.so.1").bpf_obj_get_info_by_fd(
                        descriptor, info, ctypes.byref(ctypes.c_uint32(64))
                    )
                    found["link"].add(int.from_bytes(info[4:8], sys.byteorder))
                case _:
                    found["map"].add(descriptors.map_info(descriptor).identity)
    return found


@pytest.mark.root
@pytest.mark.usefixtures("server")
def test_a_killed_loader_leaves_steering_in_place(ground, loader):
    argv = [sys.executable, "-c", loader, ground.cgroup, ground.pins]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGKILL)
    assert window(ground) == 33
    standing = ground.backend().standing()
    assert (standing.attached, standing.generation, standing.missing) == (True, "0123456789abcdef", ())


@pytest.mark.root
@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("pin", PINS)
def test_what_a_stranger_unpins_is_seen_and_repaired(ground, backend, settings, pin):
    before = ground.connect(LISTED)
    assert window(ground) == 33
    (ground.pins / pin).unlink()
    standing = backend.standing()
    assert standing.missing
    assert standing.attached == (pin == "trie")
    assert (standing.generation is None) == (pin in {"trie", "policy"})
    if pin == "link":  # with its last reference the kernel detaches it, a moment later
        ground.awaits(lambda: window(ground) == 10)
    assert window(ground) == (10 if pin == "link" else 33)
    backend.attach()
    backend.apply("fedcba9876543210", settings)
    held = backend.read()
    assert (held.attached, held.generation, held.settings, held.missing) == (
        True,
        "fedcba9876543210",
        settings,
        (),
    )
    assert window(ground) == 33
    assert ground.window_and_algorithm(before)[0] == 33
    before.close()


@pytest.mark.root
@pytest.mark.usefixtures("server")
def test_maps_that_a_stranger_put_in_place_of_ours_are_seen_and_replaced(ground, backend, settings):
    for pin in ("policy", "counters", "connections", "program"):
        (ground.pins / pin).unlink()
        with descriptors.closing(descriptors.get(ground.pins / "trie")) as other:
            descriptors.pin(other, ground.pins / pin)
        assert backend.standing().missing
        backend.attach()
        backend.apply("fedcba9876543210", settings)
        assert backend.standing().missing == ()
        assert window(ground) == 33


@pytest.mark.root
@pytest.mark.usefixtures("server")
def test_remove_leaves_nothing_in_the_kernel(ground, backend):
    ours = of_ours(ground.pins)
    assert [len(each) for each in ours.values()] == [1, 4, 1]
    assert all(each <= identities(kind) for kind, each in ours.items())
    backend.remove()
    assert not ground.pins.exists()
    assert window(ground) == 10
    for kind, each in ours.items():  # the kernel frees them a moment later
        ground.awaits(lambda kind=kind, each=each: not each & identities(kind))
    assert backend.read().missing
    backend.remove()


@pytest.mark.root
@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("gone", PINS)
def test_remove_works_when_some_of_it_is_gone_and_spares_what_is_not_ours(ground, backend, gone):
    with descriptors.closing(descriptors.get(ground.pins / "trie")) as other:
        descriptors.pin(other, ground.pins / "a_strangers")
    (ground.pins / gone).unlink()
    backend.remove()
    assert [each.name for each in ground.pins.iterdir()] == ["a_strangers"]
    ground.awaits(lambda: window(ground) == 10)


@pytest.mark.root
@pytest.mark.usefixtures("server")
def test_by_hand_removing_the_pins_removes_it_all(ground, backend):
    ours = of_ours(ground.pins)
    subprocess.run(["rm", "-r", ground.pins], check=True)
    for kind, each in ours.items():
        ground.awaits(lambda kind=kind, each=each: not each & identities(kind))
    assert window(ground) == 10
    assert not backend.standing().attached


@pytest.mark.root
def test_a_link_that_somebody_else_holds_is_detached_all_the_same(ground, backend):
    with descriptors.closing(descriptors.get(ground.pins / "link")) as held:
        backend.remove()
        assert descriptors.link_info(held).cgroup == 0


@pytest.mark.root
def test_a_cgroup_that_was_made_anew_is_attached_anew(ground, backend, settings):
    ground.cgroup.rmdir()
    assert backend.standing().missing == (f"the link is not that of cgroup {ground.cgroup}",)
    with pytest.raises(Unavailable, match=f"no BPF: cgroup {ground.cgroup}: No such file or directory"):
        backend.attach()
    ground.cgroup.mkdir()
    backend.attach()
    assert backend.standing().missing == ()
    with ground.running(sys.executable, "-c", ECHO):
        assert window(ground) == 33
    assert backend.read().settings == settings


@pytest.mark.root
@pytest.mark.usefixtures("server")
def test_a_swap_cut_short_can_be_read_and_goes_on(ground, backend, settings):
    """Killed between the swap and the rename: the trie in use is pinned beside its place."""
    (ground.pins / "trie").rename(ground.pins / "trie_next")
    assert backend.read().settings == settings
    assert backend.standing().missing == ()
    backend.apply("fedcba9876543210", settings)
    assert backend.standing().generation == "fedcba9876543210"
    assert sorted(each.name for each in ground.pins.iterdir()) == sorted(PINS)


@pytest.mark.root
def test_settings_in_use_cannot_be_changed_in_place(ground, backend):
    with descriptors.closing(descriptors.get(ground.pins / "trie")) as trie, pytest.raises(PermissionError):
        descriptors.succeed(ctypes.CDLL("libbpf.so.1").bpf_map_delete_elem(trie, bytes(20)))
    assert backend.standing().missing == ()


@pytest.mark.root
def test_counters_of_prefixes_that_went_are_forgotten(ground, backend, settings):
    with ground.running(sys.executable, "-c", ECHO):
        assert window(ground) == 33
    (listed, other) = settings
    assert [each.connections for each in backend.read().counters.values()] == [1, 0]
    backend.apply("fedcba9876543210", {other: settings[other]})
    backend.apply("0123456789abcdef", settings)
    assert backend.read().counters[listed].connections == 0


@pytest.mark.root
@pytest.mark.usefixtures("server")
def test_why_names_what_each_open_connection_was_given(ground, backend, settings):
    with ground.connect(LISTED) as first:
        backend.apply("fedcba9876543210", settings)
        with ground.connect(LISTED) as second, ground.connect("203.0.113.7"):
            found = {each.remote_port: each for each in backend.why(local_port=80)}
            assert {port: each.generation for port, each in found.items()} == {
                first.getsockname()[1]: "0123456789abcdef",
                second.getsockname()[1]: "fedcba9876543210",
            }
            (one,) = backend.why(ip_address(LISTED), first.getsockname()[1], 80)
            assert (one.prefix, one.settings) == next(iter(settings.items()))
            assert (one.window, one.algorithm, one.bytes_before) == ("set", "waiting", 0)
            assert one.netns == Path(f"/run/netns/{ground.name}").stat().st_ino
            ground.seen(first)  # by which sockets get their cookies
            (same,) = backend.why(remote_port=one.remote_port)
            assert same.cookie
            assert backend.why(cookie=same.cookie) == (same,)


@pytest.mark.root
def test_a_handshake_that_lost_segments_keeps_the_window_that_the_kernel_cut(ground, backend):
    """RFC 5681 3.1; the client's address comes only after two retransmitted SYNs."""
    with ground.running(
        sys.executable, "-c", CONNECT, "198.51.100.99", stdout=subprocess.PIPE, text=True
    ) as near:
        assert near.stdout.readline() == "lost two\n"
        with inside(f"{ground.name}c"), socket.create_server(("0.0.0.0", 80)) as listener:  # noqa: S104
            ground.client_has("198.51.100.99/32")
            listener.settimeout(60)
            with listener.accept()[0] as connection:
                assert near.stdout.readline() == "connected\n"
                assert ground.window_and_algorithm(connection)[0] == 1
                (steered,) = backend.why(ip_address("198.51.100.99"))
                assert (steered.window, steered.algorithm) == ("cut after loss", "waiting")
