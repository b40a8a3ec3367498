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
    "ams1": "1c83abedef89de9b0645d33813497ce8383664ba52c8fc9d178a7a770213ca48",
    "fra2": "19e0244f3c7138fc09c856434645729d65629af09461e8ba30c018cff372ce97",
    "iad1": "22b3279a6bad92cd3453d2d414dc095d0632e7e9313abd88e203debdca6fa9f7",
    "sin1": "d98d25f87c43416656084f553baaa951c8a02a89f2458ca38629f3aab80515c9",
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
