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
    "ams1": "9c2ece6d831e2100b17b7b83c2792771fd3b180ee23cd216c2a018ac1e918b52",
    "fra2": "0bfdac08dfc93b956cde0059c385069bc6e52881c2775f16a0abd3e054cad2f7",
    "iad1": "693e0ab968fd82eb6997418b77f2559580720893da4bcc011f7b73281f7e3863",
    "sin1": "37b25b32a5bca90e066de3db5f2a69463efd6152ff6bbd25916ea5254745466d",
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
