"""A real kernel for the agent's tests: a host in a network namespace, and a peer that answers for its clients."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

AGENT = Path(sys.executable).with_name("tidegate-agent")


def run(*argv, check=True, **options):
    result = subprocess.run(
        [str(each) for each in argv], text=True, capture_output=True, check=False, **options
    )
    assert not check or result.returncode == 0, f"{argv}: {result.returncode}\n{result.stdout}{result.stderr}"
    return result


@dataclass(frozen=True)
class Host:
    """A network namespace, its peer's, and the agent's files."""

    name: str
    peer: str
    directory: Path

    def inside(self, *argv, **options):
        return run("ip", "netns", "exec", self.name, *argv, **options)

    def ip(self, words):
        return self.inside("ip", *words.split())

    def routes(self, prefix=None, family=4):
        """As `ip` shows the main table, apart from what the kernel adds by itself."""
        found = json.loads(self.ip(f"-N -j -{family} -d route show table main").stdout)
        return [each for each in found if each["dst"] == prefix] if prefix else found

    def own(self, prefix, family=4):
        (route,) = [each for each in self.routes(prefix, family) if each["protocol"] == "201"]
        return route

    def settings(self, prefix, family=4):
        return self.own(prefix, family)["metrics"][0]

    def steer(self, *claims, default=None, text=None):
        document = {
            "schema_version": 1,
            "generation": "0123456789abcdef",
            "default_congestion_control": default,
            "claims": [{"prefix": prefix, **settings} for prefix, settings in claims],
            "riptide": None,
        }
        (self.directory / "steering.json").write_text(json.dumps(document) if text is None else text)

    def argv(self, command):
        files = ["--state-dir", self.directory / "state"]
        if command != "flush":
            files += ["--steering", self.directory / "steering.json"]
        return [AGENT, command, *files]

    def agent(self, command, *options, under=(), check=True):
        return self.inside(*under, *self.argv(command), *options, check=check)

    def apply_at_once(self, times):
        """As many runs of `apply`, all started before any is awaited."""
        argv = ["ip", "netns", "exec", self.name, *self.argv("apply"), "--json"]
        started = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(times)]
        return [json.loads(each.communicate(timeout=60)[0]) for each in started]

    def apply(self, *options, exit_code=0):
        result = self.agent("apply", "--json", *options, check=False)
        assert result.returncode == exit_code, result.stdout + result.stderr
        return json.loads(result.stdout)

    def connections(self, local):
        """What `ss` says of each established connection, in words, by the peer's address."""
        lines = self.inside("ss", "-tinHO", "state", "established", "src", local).stdout.splitlines()
        return {line.split()[3].rsplit(":", 1)[0]: line.split() for line in lines}

    def peer_answers_for(self, address):
        run("ip", "-n", self.peer, "address", "add", f"{address}/32", "dev", "up0")

    def awaits(self, condition):
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline

    def links_carry(self):
        return not [
            each for family in (4, 6) for each in self.routes(family=family) if "linkdown" in each["flags"]
        ]

    def algorithm(self):
        return self.inside("cat", "/proc/sys/net/ipv4/tcp_congestion_control").stdout.strip()


@pytest.fixture
def host(tmp_path):
    """A host with a default route by `up0`, a second link `up1`, and a peer behind both."""
    name = f"tga-{os.getpid()}"
    made = Host(name, f"{name}-peer", tmp_path)
    try:
        for each in (made.name, made.peer):
            run("ip", "netns", "add", each)
            run("ip", "-n", each, "link", "set", "lo", "up")
        for number, link in enumerate(("up0", "up1")):
            ends = f"{link} netns {made.name} type veth peer name {link} netns {made.peer}"
            run("ip", "link", "add", *ends.split())
            for side, each in enumerate((made.peer, made.name), start=1):
                run("ip", "-n", each, "address", "add", f"192.0.2.{64 * number + side}/26", "dev", link)
                run("ip", "-n", each, "address", "add", f"2001:db8:{number}::{side}/64", "dev", link, "nodad")
                # No link-local routes: the kernel would add them at a time of its own.
                run("ip", "-n", each, "link", "set", link, "up", "addrgenmode", "none")
        made.ip("route add default via 192.0.2.1")
        made.ip("-6 route add default via 2001:db8::1")
        made.awaits(made.links_carry)
        yield made
    finally:
        for each in (made.name, made.peer):
            run("ip", "netns", "del", each, check=False)
