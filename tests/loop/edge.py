"""What runs on the host of a POP: nginx, sshd, the agent, and the collector."""

import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tidegate_lab.namespaces import run
from tidegate_lab.service import service

from .fleet import POPS

COMMANDS = Path(sys.executable).parent  # where the environment's tidegate commands are
OBJECT_BYTES = 1_000_000

NGINX = """\
daemon off;
user root;
worker_processes 1;
pid {directory}/nginx.pid;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  sendfile on;
  server {{
    listen 80;
    listen [::]:80;
    root {directory}/objects;
  }}
}}
"""

SSHD = """\
Port 22
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/client_key.pub
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
PidFile none
"""


@contextmanager
def edge_hosts(network, directory):
    """nginx and sshd in every POP, with their files in a directory for each host."""
    # Debian's ssh.service makes it, and sshd refuses to start without it.
    Path("/run/sshd").mkdir(exist_ok=True)
    with ExitStack() as stack:
        for pop in POPS:
            here = directory / pop.host
            (here / "objects").mkdir(parents=True)
            (here / "objects" / "object").write_bytes(bytes(OBJECT_BYTES))
            (here / "nginx.conf").write_text(NGINX.format(directory=here))
            (here / "sshd_config").write_text(SSHD.format(directory=here))
            for key in ("host_key", "client_key"):
                run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(here / key))
            namespace = network.pops[pop.name]
            nginx = ("/usr/sbin/nginx", "-p", str(here), "-c", str(here / "nginx.conf"), "-e", "stderr")
            stack.enter_context(service(namespace, *nginx, port=80))
            sshd = ("/usr/sbin/sshd", "-D", "-e", "-f", str(here / "sshd_config"))
            stack.enter_context(service(namespace, *sshd, port=22))
        yield


@contextmanager
def steering(network, directory):
    """An agent in every POP, which steers by routes: BPF knows cgroups, and the POPs share one."""
    agents = {}
    with ExitStack() as stack:
        for pop in POPS:
            here = directory / pop.host
            argv = ["ip", "netns", "exec", network.pops[pop.name], COMMANDS / "tidegate-agent", "run"]
            argv += ["--steering", here / "steering.json", "--state-dir", here / "agent"]
            argv += ["--backend", "routes", "--when-starved", "nothing"]
            agents[pop.name] = stack.enter_context(subprocess.Popen(argv))
            stack.callback(agents[pop.name].terminate)
            await_socket(agents[pop.name], here / "agent" / "agent.sock")
        yield
        for agent in agents.values():
            assert agent.poll() is None, "an agent ended too early"


def await_socket(agent, path):
    deadline = time.monotonic() + 60
    while not path.is_socket():
        assert agent.poll() is None, "an agent ended before it listened"
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def collecting(network, fleet_json, directory):
    """A collector in every POP while the block runs; yields the files that they write."""
    files = [directory / f"{pop.name}.pb" for pop in POPS]
    with ExitStack() as stack:
        collectors = []
        for pop, file in zip(POPS, files, strict=True):
            argv = ["ip", "netns", "exec", network.pops[pop.name], COMMANDS / "tidegate-collector", "run"]
            argv += ["--interval", "100ms", "--pop", pop.name, "--host", pop.host]
            argv += ["--fleet", fleet_json, "--out", file]
            collectors.append(stack.enter_context(subprocess.Popen(argv)))
            stack.callback(collectors[-1].terminate)
        yield files
        for collector in collectors:
            assert collector.poll() is None, "a collector ended too early"
            collector.terminate()
            assert collector.wait(timeout=60) == 0
