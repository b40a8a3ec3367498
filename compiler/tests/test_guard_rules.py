"""The guard's rules by OPA's own means: their tests pass, and they are strict, formatted and documented."""

import re
import subprocess
from pathlib import Path

import pytest

POLICIES = Path(__file__).parents[2] / "policies"
RULES = [path for path in POLICIES.glob("*.rego") if not path.name.endswith("_test.rego")]


@pytest.mark.parametrize(
    "arguments",
    [
        ["test", "--timeout", "60s"],
        ["check", "--strict"],
        ["check", "--capabilities", "v1.0.0"],  # the oldest OPA that `judge` accepts
        ["fmt", "--list", "--fail"],
    ],
    ids=" ".join,
)
def test_opa_is_content(arguments):
    ended = subprocess.run(["opa", *arguments, str(POLICIES)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_code_is_documented_and_no_other():
    documented = re.findall(r"^\| `(\w+)` \|", (POLICIES / "README.md").read_text(), re.MULTILINE)
    used = {code for path in RULES for code in re.findall(r'"code": "(\w+)"', path.read_text())}
    assert sorted(documented) == sorted(used)


def test_every_limit_has_a_reason_and_is_read():
    above, reasons = "", {}
    for line in (POLICIES / "limits.yaml").read_text().splitlines():
        if key := re.match(r"  (\w+):", line):
            reasons[key[1]] = above
        above = line.strip() if line.strip().startswith("#") else ""
    text = "".join(path.read_text() for path in RULES)
    assert len(reasons) == 11
    assert all(reasons.values())
    assert [key for key in reasons if f"data.limits.{key}" not in text] == []
