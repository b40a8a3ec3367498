"""The unit of the daemon: systemd understands it, and its command line is one that the agent takes."""

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from tidegate_edge.agent.commands import commands

UNIT = Path(__file__).parents[1] / "systemd" / "tidegate-agent.service"


def test_the_command_line_is_one_that_the_agent_takes():
    (line,) = [each for each in UNIT.read_text().splitlines() if each.startswith("ExecStart=")]
    program, *words = line.removeprefix("ExecStart=").split()
    assert Path(program).name == "tidegate-agent"
    taken = CliRunner().invoke(commands, [*words, "--help"])
    assert (taken.exit_code, taken.exception) == (0, None)
    refused = CliRunner().invoke(commands, [*words, "--no-such-option"])
    assert refused.exit_code == 2


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_understands_every_line(tmp_path):
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/usr/bin/tidegate-agent", "/bin/true"))
    said = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (said.returncode, [each for each in said.stderr.splitlines() if UNIT.name in each]) == (0, [])
