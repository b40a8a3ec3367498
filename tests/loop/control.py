"""The control node: its inventory and policy, the `tidegate` command, and the playbook."""

import json
import os
import subprocess
from pathlib import Path

import yaml

from .edge import COMMANDS
from .fleet import POLICY, POPS

ROOT = Path(__file__).parents[2]


class ControlNode:
    """A directory with everything that the commands read and write, and the namespace that they run in."""

    def __init__(self, directory, namespace):
        self.directory = directory
        self.namespace = namespace
        self.inventory = directory / "inventory"
        self.inventory.mkdir()
        self.policy = directory / "loop.tide"
        self.policy.write_text(POLICY)
        (self.inventory / "hosts.yml").write_text(yaml.safe_dump(inventory(directory)))
        path = os.pathsep.join([str(COMMANDS), str(ROOT / "build" / "bin"), os.environ["PATH"]])
        self.environment = os.environ | {"PATH": path, "ANSIBLE_HOME": str(directory / "ansible")}

    def tidegate(self, *arguments):
        """Run `tidegate` with a state directory of its own and return the JSON that it prints."""
        argv = ["tidegate", "--state", self.directory / "state", *arguments]
        return json.loads(self._run(argv))

    def roll_out(self):
        """Run the playbook on the fleet; returns what it prints."""
        self._run([ROOT / "playbooks" / "link-collection.sh"])
        return self._run(["ansible-playbook", "-i", self.inventory, "playbooks/site.yml"])

    def _run(self, argv):
        argv = ["ip", "netns", "exec", self.namespace, *argv]
        done = subprocess.run(
            argv, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def inventory(directory):
    """The inventory of the fleet, with a host's files in a directory for each: both hosts share one file system."""
    known_hosts = directory / "known_hosts"
    known_hosts.write_text(
        "".join(f"{p.management} {(directory / p.host / 'host_key.pub').read_text()}" for p in POPS)
    )
    groups = {
        f"pop_{pop.name}": {
            "hosts": {pop.host: host_variables(directory / pop.host, pop.management, known_hosts)},
            "vars": {"tidegate_pop": pop.name, "tidegate_own_prefixes": list(pop.own_prefixes)},
        }
        for pop in POPS
    }
    return {"all": {"children": {"pops": {"children": {"europe": {"children": groups}}}}}}


def host_variables(directory, address, known_hosts):
    return {
        "ansible_host": address,
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(directory / "client_key"),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={known_hosts} -o StrictHostKeyChecking=yes",
        "ansible_python_interpreter": str(COMMANDS / "python"),
        "ansible_remote_tmp": str(directory / "ansible"),
        "congestion_control_agent": [str(COMMANDS / "tidegate-agent")],
        "congestion_control_steering_file": str(directory / "steering.json"),
        "congestion_control_state_directory": str(directory / "agent"),
    }
