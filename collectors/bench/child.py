"""A measurement in a process of its own, which may enter namespaces and takes its memory with it."""

import json
import subprocess
import sys


def figures_of(script: str) -> dict[str, dict[str, object]]:
    """What `SCRIPT --measure` prints as JSON.

    Raises:
        RuntimeError: it failed; its error output has been passed on.
    """
    command = [sys.executable, script, "--measure"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}")
    return json.loads(done.stdout)
