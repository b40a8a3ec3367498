"""The archive of the edge software: a reviewed sum says something only if the same software always has it."""

import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ARCHIVE = ROOT / "build/edge/tidegate-edge.tar.gz"


def built():
    subprocess.run([ROOT / "molecule/edge-artifact.sh"], check=True)
    return ARCHIVE.with_name(f"{ARCHIVE.name}.sha256").read_text()


def test_the_same_software_gives_the_same_archive():
    first = built()
    assert built() == first
    with tarfile.open(ARCHIVE) as archive:
        names = set(archive.getnames())
    assert {f"tidegate-edge/bin/tidegate-{program}" for program in ("agent", "collector")} < names
