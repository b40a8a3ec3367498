"""The queueing discipline that the role congestion_control sets, on a kernel that has it.

The parameter and its file are the whole machine's, so nothing but `on_kernel.sh` runs this, in a machine that ends
with it. Links are TAP devices: a veth has no queue to which a discipline could apply.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible.cli.playbook import PlaybookCLI

ROOT = Path(__file__).resolve().parents[3]
PARAMETER = Path("/proc/sys/net/core/default_qdisc")
BOOT = Path("/etc/sysctl.d/60-tidegate-congestion_control.conf")
MEMORY = Path("/var/lib/tidegate-sysctls/congestion_control.conf")
PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: tidegate.edge.congestion_control
        tasks_from: "{{ tasks_from }}"
"""


@pytest.fixture
def role(tmp_path):
    """Runs some of the role's tasks on this machine; returns what Ansible said, its recap last."""
    collections = tmp_path / "ansible_collections/tidegate"
    collections.mkdir(parents=True)
    (collections / "edge").symlink_to(ROOT)
    playbook = tmp_path / "playbook.yml"
    playbook.write_text(PLAYBOOK)
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(tmp_path),
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",
    }

    def run(tasks_from, *options, **variables):
        stated = {"tasks_from": tasks_from, "ansible_python_interpreter": sys.executable, **variables}
        argv = [sys.executable, "-m", PlaybookCLI.__module__, "-i", "localhost,", "-c", "local", *options]
        argv += [word for name, value in stated.items() for word in ("-e", f"{name}={value}")]
        done = subprocess.run([*argv, playbook], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture
def link():
    """Makes a link, brings it up, and names its queueing discipline."""
    made = []

    def make(name):
        made.append(name)
        subprocess.run(["ip", "tuntap", "add", "dev", name, "mode", "tap"], check=True)
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
        return discipline(name)

    yield make
    for name in made:
        subprocess.run(["ip", "link", "delete", name], check=True)


def discipline(name):
    said = subprocess.run(
        ["tc", "qdisc", "show", "dev", name, "root"], capture_output=True, text=True, check=True
    )
    return said.stdout.split()[1]


@pytest.mark.root
def test_links_that_come_up_later_get_the_discipline_until_the_role_is_taken_back(role, link):
    before = PARAMETER.read_text()
    first = link("before")
    assert first != "fq"

    role("sysctls", "--check", congestion_control_qdisc="fq")
    assert PARAMETER.read_text() == before
    assert not BOOT.exists()

    assert "changed=1" in role("sysctls", congestion_control_qdisc="fq")
    assert PARAMETER.read_text() == "fq\n"
    assert "net.core.default_qdisc = fq\n" in BOOT.read_text()
    assert link("after") == "fq"
    assert discipline("before") == first
    assert "changed=0" in role("sysctls", congestion_control_qdisc="fq")

    role("absent")
    assert PARAMETER.read_text() == before
    assert not BOOT.exists()
    assert not MEMORY.exists()
