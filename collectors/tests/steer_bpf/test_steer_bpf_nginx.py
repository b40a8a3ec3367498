"""Steering of an nginx that knows nothing of it, as `ss` and the counters show it."""

import http.client
import subprocess
import sys
from ipaddress import ip_address, ip_network
from shutil import which

import pytest
from tidegate_edge.steer.claims import Settings

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not which("nginx"), reason="no nginx: apt-get install nginx-light"),
]
SMALL, BELOW, ABOVE, LARGE = 20_000, 90_000, 130_000, 1_000_000
LISTED = ("198.51.100.7", "2001:db8:5:1ff::7")
UNLISTED = ("203.0.113.7", "2001:db8:6::7")

# Without CAP_PERFMON the kernel lets no program read its own structures: only the lesser variant loads.
ATTACH_AND_APPLY = """
import sys
from ipaddress import ip_network
from pathlib import Path
from tidegate_edge.steer.bpf import BpfBackend
from tidegate_edge.steer.claims import Settings
backend = BpfBackend(Path(sys.argv[1]), Path(sys.argv[2]), tell=print)
backend.attach()
backend.apply("0123456789abcdef", {ip_network(each): Settings("bbr", 33, None, 100_000) for each in sys.argv[3:]})
"""


@pytest.fixture
def nginx(ground, tmp_path):
    for size in (SMALL, BELOW, ABOVE, LARGE):
        (tmp_path / str(size)).write_bytes(bytes(size))
    config = tmp_path / "nginx.conf"
    config.write_text(f"""
daemon off; worker_processes 2; pid {tmp_path}/nginx.pid; user root; error_log stderr;
events {{ }}
http {{ access_log off; server {{ listen [::]:80 ipv6only=off; root {tmp_path}; }} }}
""")
    with ground.running("nginx", "-p", tmp_path, "-c", config, stderr=subprocess.DEVNULL) as process:
        ground.connect(UNLISTED[0]).close()
        yield
        process.terminate()
        process.wait(60)


def get(connection, *sizes):
    """Over one connection."""
    client = http.client.HTTPConnection("server")
    client.sock = connection
    for size in sizes:
        client.request("GET", f"/{size}")
        assert len(client.getresponse().read()) == size


@pytest.mark.usefixtures("nginx")
def test_listed_prefixes_switch_above_the_size_and_nobody_else_does(ground, settings):
    backend = ground.backend()
    backend.attach()
    backend.apply("0123456789abcdef", settings)
    assert backend.read().variant == "queued"
    for source in LISTED:
        for size, algorithm in ((SMALL, "cubic"), (BELOW, "cubic"), (ABOVE, "bbr"), (LARGE, "bbr")):
            with ground.connect(source) as connection:
                assert ground.window_and_algorithm(connection) == (33, "cubic")
                get(connection, size)
                assert ground.window_and_algorithm(connection)[1] == algorithm, (source, size)
                (steered,) = backend.why(ip_address(source), connection.getsockname()[1])
                assert steered.algorithm == ("set" if algorithm == "bbr" else "waiting")
    for source in UNLISTED:
        for size in (SMALL, LARGE):
            with ground.connect(source) as connection:
                assert ground.window_and_algorithm(connection) == (10, "cubic")
                get(connection, size)
                assert ground.window_and_algorithm(connection)[1] == "cubic"
                assert backend.why(ip_address(source)) == ()
    for counters in backend.read().counters.values():
        assert (counters.connections, counters.switches) == (4, 2)
        assert 200_000 <= counters.bytes_before_switch <= ABOVE + LARGE + 1_000
        assert (counters.window_failures, counters.algorithm_failures, counters.storage_failures) == (0, 0, 0)


@pytest.mark.usefixtures("nginx")
def test_without_the_right_to_read_the_kernels_structures_acknowledged_bytes_decide(ground):
    argv = ["setpriv", "--bounding-set", "-all,+bpf,+net_admin", sys.executable, "-c", ATTACH_AND_APPLY]
    argv += [ground.cgroup, ground.pins, "198.51.100.0/24", "2001:db8:5:100::/56"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("sizes are told by acknowledged bytes only, which is later: no BPF: ")
    backend = ground.backend()
    assert backend.read().variant == "acked"
    for source in LISTED:
        for size, algorithm in ((SMALL, "cubic"), (BELOW, "cubic"), (LARGE, "bbr")):
            with ground.connect(source) as connection:
                assert ground.window_and_algorithm(connection) == (33, "cubic")
                get(connection, size)
                assert ground.window_and_algorithm(connection)[1] == algorithm, (source, size)
    assert [(each.connections, each.switches) for each in backend.read().counters.values()] == [
        (3, 1),
        (3, 1),
    ]


@pytest.mark.usefixtures("nginx")
@pytest.mark.parametrize(("per_request", "algorithm"), [(False, "bbr"), (True, "cubic")])
def test_a_connections_bytes_count_together_or_by_request(ground, settings, per_request, algorithm):
    backend = ground.backend(per_request=per_request)
    backend.attach()
    backend.apply("0123456789abcdef", settings)
    for source in LISTED:
        with ground.connect(source) as connection:
            get(connection, BELOW, BELOW)
            assert ground.window_and_algorithm(connection)[1] == algorithm
            get(connection, BELOW, ABOVE, SMALL)
            assert ground.window_and_algorithm(connection)[1] == "bbr"


@pytest.mark.usefixtures("nginx")
def test_each_setting_alone(ground, snd_wnd):
    backend = ground.backend()
    backend.attach()
    backend.apply(
        "0123456789abcdef",
        {
            ip_network("198.51.100.0/24"): Settings("bbr"),
            ip_network("203.0.113.0/24"): Settings(initrwnd=20),
            ip_network("2001:db8:5::/48"): Settings(initcwnd=50),
            ip_network("2001:db8:5:100::/56"): Settings(initcwnd=20),
            ip_network("2001:db8:6::/48"): Settings("no_such", 12),
        },
    )
    with ground.connect("198.51.100.7") as connection:
        assert ground.window_and_algorithm(connection) == (10, "bbr")
        assert snd_wnd(connection) > 60_000
    with ground.connect("203.0.113.7") as connection:
        assert ground.window_and_algorithm(connection) == (10, "cubic")
        assert 20 * 1_300 <= snd_wnd(connection) <= 20 * 1_460
    with ground.connect("2001:db8:5:1ff::7") as connection:
        assert ground.window_and_algorithm(connection) == (20, "cubic")  # the longest prefix
    with ground.connect("2001:db8:6::7") as connection:
        assert ground.window_and_algorithm(connection) == (12, "cubic")
        get(connection, LARGE)
        (steered,) = backend.why(remote_port=connection.getsockname()[1])
        assert (steered.window, steered.algorithm) == ("set", "refused")
    assert backend.read().counters[ip_network("2001:db8:6::/48")].algorithm_failures == 1


@pytest.mark.usefixtures("nginx")
def test_a_claim_on_all_of_one_family_is_of_that_family(ground):
    backend = ground.backend()
    backend.attach()
    for whole, windows in (("::/0", (10, 25)), ("0.0.0.0/0", (25, 10))):
        backend.apply("0123456789abcdef", {ip_network(whole): Settings(initcwnd=25)})
        for source, window in zip(UNLISTED, windows, strict=True):
            with ground.connect(source) as connection:
                assert ground.window_and_algorithm(connection)[0] == window
