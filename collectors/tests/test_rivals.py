"""Rivals: each is found by what it leaves on a host, and only then; the way out is said."""

import ctypes
import os
import platform
import struct
from contextlib import contextmanager
from ipaddress import ip_network

import pytest
from tidegate_edge.sockets.netns import inside
from tidegate_edge.steer.claims import Settings
from tidegate_edge.steer.rivals import KINDS, find_rivals, rivals_of
from tidegate_edge.steer.route_backend import RouteBackend
from tidegate_edge.steer.sock_ops import SYS_BPF, attached, pinned_programs
from tidegate_edge.steer.surroundings import Surroundings, read_surroundings

NETWORKD = "systemd-networkd, foreign routes"
BPF_PROG_LOAD, BPF_OBJ_PIN, BPF_LINK_CREATE = 5, 6, 28
BPF_PROG_TYPE_SOCK_OPS, BPF_CGROUP_SOCK_OPS = 13, 3


@pytest.fixture
def root(tmp_path):
    """A host's file system with nothing in it."""
    return tmp_path / "root"


def write(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def process(root, number, name):
    write(root / f"proc/{number}/comm", f"{name[:15]}\n")


def found(root):
    """Routes are those of this namespace, whatever the root: what they show is left out."""
    by_routes = {"congctl lock", "systemd-networkd, foreign nexthop objects"}
    return [each.name for each in find_rivals(root) if each.name not in by_routes]


def test_an_empty_host_has_no_rivals(root):
    assert found(root) == []


@pytest.mark.parametrize(
    ("comm", "rival"),
    [("bpftune", "bpftune"), ("NetworkManager", "NetworkManager"), ("systemd-networkd", NETWORKD)],
)
def test_a_rival_that_runs_is_found(root, comm, rival):
    process(root, 7, "sshd")
    process(root, 12, comm)
    write(root / "proc/version/comm", comm)
    assert found(root) == [rival]


@pytest.mark.parametrize(
    ("path", "rival"),
    [
        ("sys/fs/bpf/bpftune/map", "bpftune"),
        ("sys/fs/bpf/tc/globals/cilium_throttle", "Cilium's bandwidth manager"),
    ],
)
def test_a_rival_that_left_its_pins_is_found(root, path, rival):
    write(root / path)
    assert found(root) == [rival]


MAIN = "etc/systemd/networkd.conf"
LAYOUTS = {
    "nothing said": ({}, True),
    "no": ({MAIN: "[Network]\nManageForeignRoutes=no\n"}, False),
    "spelt otherwise": ({MAIN: "[Network]\n ManageForeignRoutes = False\n"}, False),
    "yes": ({MAIN: "[Network]\nManageForeignRoutes=yes\n"}, True),
    "a comment": ({MAIN: "[Network]\n#ManageForeignRoutes=no\n"}, True),
    "another section": ({MAIN: "[DHCPv4]\nManageForeignRoutes=no\n"}, True),
    "a drop-in": ({"usr/lib/systemd/networkd.conf.d/9.conf": "[Network]\nManageForeignRoutes=no"}, False),
    "a drop-in over the main file": (
        {
            MAIN: "[Network]\nManageForeignRoutes=no",
            "run/systemd/networkd.conf.d/9.conf": "[Network]\nManageForeignRoutes=yes",
        },
        True,
    ),
    "the last drop-in by name": (
        {
            "etc/systemd/networkd.conf.d/1.conf": "[Network]\nManageForeignRoutes=yes",
            "usr/lib/systemd/networkd.conf.d/2.conf": "[Network]\nManageForeignRoutes=no",
        },
        False,
    ),
    "a drop-in hidden by one in /etc": (
        {
            "etc/systemd/networkd.conf.d/1.conf": "",
            "usr/lib/systemd/networkd.conf.d/1.conf": "[Network]\nManageForeignRoutes=no",
        },
        True,
    ),
    "the main file of /etc alone": (
        {MAIN: "", "usr/lib/systemd/networkd.conf": "[Network]\nManageForeignRoutes=no"},
        True,
    ),
}


@pytest.mark.parametrize(("files", "rival"), LAYOUTS.values(), ids=LAYOUTS)
def test_networkd_is_a_rival_unless_told_to_leave_foreign_routes(root, files, rival):
    for name, text in files.items():
        write(root / name, text)
    assert found(root) == []  # it does not run
    process(root, 40, "systemd-networkd")
    assert found(root) == [NETWORKD] * rival


def test_foreign_nexthop_objects_matter_where_routes_use_them():
    runs = frozenset({"systemd-networkd"})
    told = {"ManageForeignRoutes": "no"}
    assert rivals_of(Surroundings(runs, networkd=told)) == ()
    (rival,) = rivals_of(Surroundings(runs, networkd=told, nexthop_objects=True))
    assert "ManageForeignNextHops=yes, its default" in rival.found
    assert not rivals_of(
        Surroundings(runs, networkd=told | {"ManageForeignNextHops": "no"}, nexthop_objects=True)
    )


@pytest.mark.parametrize(("metrics", "thresholds", "rival"), [("0", "0", 1), ("0", "1", 0), ("1", "0", 0)])
def test_thresholds_of_earlier_connections_are_named_where_both_settings_keep_them(
    root, metrics, thresholds, rival
):
    write(root / "proc/sys/net/ipv4/tcp_no_metrics_save", f"{metrics}\n")
    write(root / "proc/sys/net/ipv4/tcp_no_ssthresh_metrics_save", f"{thresholds}\n")
    assert len(found(root)) == rival


def test_many_are_counted_not_listed():
    locked = tuple(ip_network((0xC6120000 + n, 32)) for n in range(9))
    (rival,) = rivals_of(Surroundings(locked=locked))
    assert rival.found == "the route to 198.18.0.0/32, 198.18.0.1/32, 198.18.0.2/32 and 6 more"


def test_each_row_of_the_table_can_be_found_and_says_what_to_do():
    everything = Surroundings(
        frozenset({"bpftune", "systemd-networkd", "NetworkManager"}),
        frozenset({"sys/fs/bpf/tc/globals/cilium_throttle"}),
        sysctls={"tcp_no_metrics_save": "0", "tcp_no_ssthresh_metrics_save": "0"},
        foreign_sock_ops=(7,),
        locked=(ip_network("192.0.2.0/24"),),
        nexthop_objects=True,
    )
    rivals = rivals_of(everything)
    assert [each.name for each in rivals] == [kind.name for kind in KINDS]
    assert all(each.found and each.breaks and each.what_to_do for each in rivals)


@pytest.mark.root
def test_a_locked_algorithm_is_found_on_a_host_and_our_own_clone_of_it_is_not_named(host):
    host.ip("route add 198.51.100.0/24 via 192.0.2.1 congctl lock cubic")
    host.ip("-6 route add 2001:db8:5::/48 via 2001:db8::1 mtu lock 1400 congctl cubic")
    with inside(host.name):
        RouteBackend().apply("0" * 16, {ip_network("198.51.100.128/25"): Settings("bbr")})
        assert read_surroundings().locked == (ip_network("198.51.100.0/24"),)
        (rival,) = [each for each in find_rivals() if each.name == "congctl lock"]
    assert rival.found == "the route to 198.51.100.0/24"


@pytest.mark.root
def test_a_program_at_the_root_cgroup_is_a_rival_unless_we_pinned_it(root, cgroup, bpf_files):
    write(
        root / "proc/self/mountinfo",
        "29 24 0:26 /below /elsewhere rw - cgroup2 cgroup2 rw\n"
        "30 24 0:26 / /cgroup rw shared:9 - cgroup2 cgroup2 rw\n",
    )
    (root / "cgroup").symlink_to(cgroup)
    (root / "sys/fs/bpf").mkdir(parents=True)
    (root / "sys/fs/bpf/tidegate").symlink_to(bpf_files)
    assert (attached(cgroup), found(root)) == ((), [])
    with a_stranger_at(cgroup) as link:
        (number,) = attached(cgroup)
        assert found(root) == ["another sock_ops program"]
        text = ctypes.create_string_buffer(os.fsencode(bpf_files / "link"))
        bpf(BPF_OBJ_PIN, struct.pack("=QII", ctypes.addressof(text), link, 0))
        assert pinned_programs(bpf_files) == {number}
        assert found(root) == []
        (bpf_files / "link").unlink()
    assert attached(cgroup) == ()


OWN_ROOT = """
mount -t cgroup2 cgroup2 /sys/fs/cgroup && mount -t bpf bpf /sys/fs/bpf && exec "$@"
"""


@pytest.mark.root
@pytest.mark.parametrize("pins", ["/sys/fs/bpf/tidegate", "/sys/fs/bpf/elsewhere"])
def test_a_daemon_that_steers_the_whole_host_names_a_stranger_and_not_itself(cgroup, entering, daemon, pins):
    # In namespaces of cgroups and mounts of its own, the host ends at the cgroup.
    daemon.under = (*entering, "unshare", "--cgroup", "--mount", "sh", "-c", OWN_ROOT, "sh")
    daemon.options = ("--backend", "bpf", "--pins", pins)
    daemon.start()
    daemon.host.steer(("198.18.7.0/24", {"initcwnd": 31}))
    daemon.apply()
    assert daemon.status()["attached"]
    assert len(attached(cgroup)) == 1

    def names():
        return [each["name"] for each in daemon.status()["rivals"]]

    assert "another sock_ops program" not in names()
    with a_stranger_at(cgroup):
        assert "another sock_ops program" in names()
    assert "another sock_ops program" not in names()
    assert daemon.ask("flush").exit_code == 0
    assert attached(cgroup) == ()


def test_what_is_not_there_or_no_pin_holds_no_program(tmp_path):
    write(tmp_path / "pins/file")
    assert pinned_programs(tmp_path / "pins") == pinned_programs(tmp_path / "missing") == frozenset()
    assert attached(tmp_path) == attached(tmp_path / "missing") == ()


@contextmanager
def a_stranger_at(cgroup):
    """Somebody's program, attached by a link of which this is the descriptor."""
    program, directory = load_sock_ops(), os.open(cgroup, os.O_RDONLY)
    link = bpf(BPF_LINK_CREATE, struct.pack("=IIII", program, directory, BPF_CGROUP_SOCK_OPS, 0))
    try:
        yield link
    finally:
        for each in (link, directory, program):
            os.close(each)


def load_sock_ops():
    """`return 1`."""
    instructions = struct.pack("=BBhiBBhi", 0xB7, 0, 0, 1, 0x95, 0, 0, 0)
    text, licence = ctypes.create_string_buffer(instructions, 16), ctypes.create_string_buffer(b"GPL")
    asked = struct.pack("=IIQQ", BPF_PROG_TYPE_SOCK_OPS, 2, ctypes.addressof(text), ctypes.addressof(licence))
    return bpf(BPF_PROG_LOAD, asked + bytes(96))


def bpf(command, attributes):
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    result = libc.syscall(SYS_BPF[platform.machine()], command, buffer, len(attributes))
    assert result >= 0, os.strerror(ctypes.get_errno())
    return result
