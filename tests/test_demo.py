"""`make demo`'s own script, as it is, and the bytes that it must write on every machine."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATH = os.pathsep.join([str(Path(sys.executable).parent), str(ROOT / "build/bin"), os.environ["PATH"]])

# SHA-256 of each POP's variables. They change when the example policy, the example inventory, the simulation or the
# form of the variables does; on two machines of one revision they never differ.
WRITTEN = {
    "ams1": "d6ed7b6ecfe32a7b93035b7644198ce75317d879a0d74fc644546cd19d3b88f7",
    "fra2": "404b0295b54f9e1ce61663b83e4eeacfe55e7e8ae3f864425172c16a783ebdb9",
    "iad1": "581a827e5cf53b1c9397fe2b88497c2625fa4afe0d5d3c3543556bdcf44763be",
    "sin1": "f8606ca281844c4b1fe6d79ab07165e58c889ddf0e27248b0aec19ddd20c64fc",
}


def test_the_demo_shows_what_it_promises_and_writes_the_same_bytes_everywhere(tmp_path):
    done = subprocess.run(
        [ROOT / "compiler/demo.sh", tmp_path / "demo"],
        cwd=ROOT,
        env=os.environ | {"PATH": PATH},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    assert "SIMULATED" in said
    assert said.count("Open Policy Agent allows it.") == 3
    assert "Nothing changes" in said
    assert "pass       require duty_cycle >= 60%" in said
    files = {
        path.parent.name.removeprefix("pop_"): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (tmp_path / "demo").glob("inventory/group_vars/pop_*/tidegate.yml")
    }
    assert files == WRITTEN
