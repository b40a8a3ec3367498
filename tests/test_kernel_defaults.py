"""The script of stop.yml by itself: what it takes back where the agent does not, and what it says of what stays."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "roles/kernel_defaults/files/kernel-defaults.sh"
IDLE = "net.ipv4.tcp_slow_start_after_idle"
RMEM = "net.ipv4.tcp_rmem"
OURS = "4096 262144 33554432"
# A host with folders and namespaces of its own: of this machine's it has the programs alone.
HOST = f"""
set -e
for folder in /etc /run /var/lib "$ELSEWHERE"; do mount -t tmpfs tmpfs "$folder"; done
mount -t bpf bpf /sys/fs/bpf
mkdir -p /etc/sysctl.d /var/lib/tidegate /var/lib/tidegate-sysctls
run() {{ sh {SCRIPT} "$@"; }}
"""

pytestmark = pytest.mark.root


@pytest.fixture
def on_a_host(tmp_path):
    """Runs shell text on such a host."""

    def run(text):
        argv = ["unshare", "--mount", "--net", "--propagation=private", "sh", "-c", HOST + text]
        environment = {"ELSEWHERE": str(tmp_path), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)

    return run


def remembered(before, ours):
    """Shell text: the module sysctls remembers what stood there, and has set what is ours."""
    return f"""
printf '# \\n{before}\\n' > /var/lib/tidegate-sysctls/riptide.conf
printf '# \\n{ours}\\n' > /etc/sysctl.d/60-tidegate-riptide.conf
"""


def test_parameters_get_what_stood_there_and_are_forgotten(on_a_host):
    known = remembered(f"{IDLE} = 1\\n{RMEM} = 4096 131072 6291456", f"{IDLE} = 0\\n{RMEM} = {OURS}")
    ran = on_a_host(f"""{known}
sysctl -qw {IDLE}=0 {RMEM}='{OURS}'
run --dry-run sysctls
sysctl -n {IDLE}
run sysctls
sysctl -n {IDLE} {RMEM}
ls /etc/sysctl.d /var/lib
run sysctls
""")
    told = [f"put back: {IDLE} = 1", f"put back: {RMEM} = 4096 131072 6291456"]
    assert ran.stdout.splitlines() == [
        *told, "0", *told, "1", "4096\t131072\t6291456", "/etc/sysctl.d:", "", "/var/lib:", "tidegate",
    ]  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")


def test_what_others_have_set_since_and_what_was_so_before_stay_as_they_are(on_a_host):
    known = remembered(f"{IDLE} = 0\\n{RMEM} = 4096 131072 6291456", f"{IDLE} = 0\\n{RMEM} = {OURS}")
    ran = on_a_host(f"""{known}
sysctl -qw {IDLE}=0 {RMEM}='8192 131072 4194304'
run sysctls
sysctl -n {IDLE} {RMEM}
ls /var/lib
""")
    assert ran.stdout.splitlines() == ["0", "8192\t131072\t4194304", "tidegate"]
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_parameter_that_the_kernel_does_not_take_back_is_told_and_remembered(on_a_host):
    known = remembered(f"{IDLE} = no number", f"{IDLE} = 0")
    ran = on_a_host(f"""{known}
sysctl -qw {IDLE}=0
run sysctls mark || echo "code $?"
cat /var/lib/tidegate-sysctls/riptide.conf /etc/sysctl.d/60-tidegate-riptide.conf
ls /etc/tidegate
""")
    assert f"still there: {IDLE} no number\n" in ran.stderr
    assert ran.stdout.splitlines()[-6:] == [
        "code 1", "# ", f"{IDLE} = no number", "# ", f"{IDLE} = 0", "stopped",
    ]  # fmt: skip


def test_bpf_is_removed_where_the_agent_noted_that_it_is(on_a_host):
    ran = on_a_host("""
mkdir /sys/fs/bpf/other /sys/fs/bpf/elsewhere
echo '{"pins": ["/sys/fs/bpf/tidegate", "/sys/fs/bpf/elsewhere"]}' > /var/lib/tidegate/bpf.json
run --dry-run steering
run steering
ls -d /sys/fs/bpf/*/
ls /var/lib/tidegate
run steering
""")
    told = "removed: program in /sys/fs/bpf/elsewhere"
    assert ran.stdout.splitlines() == [told, told, "/sys/fs/bpf/other/"]
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_note_of_other_places_has_nothing_removed_there_and_is_told(on_a_host, tmp_path):
    ran = on_a_host("""
mkdir "$ELSEWHERE/kept" /sys/fs/bpf/tidegate
echo "{\\"pins\\": [\\"/sys/fs/bpf/tidegate\\", \\"$ELSEWHERE/kept\\"]}" > /var/lib/tidegate/bpf.json
run steering || echo "code $?"
ls /var/lib/tidegate "$ELSEWHERE"
! test -e /sys/fs/bpf/tidegate
""")
    assert ran.returncode == 0
    assert "code 1" in ran.stdout.splitlines()
    assert ran.stdout.splitlines()[-5:] == [f"{tmp_path}:", "kept", "", "/var/lib/tidegate:", "bpf.json"]
    assert f"still there: program in {tmp_path}/kept\n" in ran.stderr
