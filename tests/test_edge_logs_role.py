"""The role edge_logs in check mode on this machine: what it would take away, and what is not its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: tidegate.edge.edge_logs
        tasks_from: "{{ tasks_from }}"
"""
# As --diff shows it.
REMOVED = re.compile(r"^ +path: (.+)\n-    state: .+\n\+    state: absent$", re.MULTILINE)


@pytest.fixture
def removed(tmp_path):
    """Runs some of the role's tasks; returns the names of the files that they would remove."""
    playbook = tmp_path / "playbook.yml"
    playbook.write_text(PLAYBOOK)
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    subprocess.run([ROOT / "playbooks/link-collection.sh"], check=True)

    def run(tasks_from, **variables):
        stated = {"tasks_from": tasks_from, "ansible_python_interpreter": sys.executable, **variables}
        argv = ["ansible-playbook", "--check", "--diff", "-i", "localhost,", "-c", "local", playbook]
        argv += ["-e", json.dumps(stated)]
        ran = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return {Path(path).name for path in REMOVED.findall(ran.stdout)}

    return run


def test_logs_go_that_nginx_wrote_for_us_and_no_other(tmp_path, removed):
    logs, folder = tmp_path / "log", tmp_path / "conf.d"
    logs.mkdir()
    folder.mkdir()
    for name in ("edge.log", "edge.log.1", "edge.log-20261120.gz", "edge.logs", "access.log", "access.log.1"):
        (logs / name).touch()
    # A host that was given a log of its own, and an inventory that names another one since.
    given = {"edge_logs_nginx_folder": str(folder), "edge_logs_file": str(logs / "access.log")}
    assert removed("nginx", **given) == set()
    (folder / "tidegate.conf").write_text(
        f"log_format tidegate '';\naccess_log {logs}/edge.log tidegate buffer=64k flush=1s;\n"
    )
    ours = {"tidegate.conf", "edge.log", "edge.log.1", "edge.log-20261120.gz"}
    assert removed("nginx", **given) == ours


def test_no_secret_stays_where_rows_are_sent_to_brokers_no_more(tmp_path, removed):
    folder = tmp_path / "tidegate-edge-logs"
    folder.mkdir(mode=0o755)
    (folder / "tidegate-health.conf").write_text("sasl.password=secret\n")
    (folder / "kafka-ca.pem").touch()
    told = removed(
        "configure",
        edge_logs_folder=str(folder),
        edge_logs_health_state="present",
        edge_logs_pop="fra2",
        edge_logs_kafka_brokers=[],
    )
    assert told == {"kafka-ca.pem", "tidegate-health.conf"}
