"""The packages of the language: each imports only those that README.md allows it, and others use what is public."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LANGUAGE = ROOT / "dsl" / "tidegate_dsl"
README = (ROOT / "dsl" / "README.md").read_text(encoding="utf-8")
# `| [`syntax`](tidegate_dsl/syntax) | what it is for | `diagnostics`, `vocabulary` |`
ROW = re.compile(r"^\| \[`(\w+)`\]\(tidegate_dsl/\w+\) \|[^|]*\|([^|]*)\|$", re.MULTILINE)
MAY_IMPORT = {package: set(re.findall(r"`(\w+)`", allowed)) for package, allowed in ROW.findall(README)}
OTHERS = [
    file
    for room in ("compiler", "lab", "tests", "dsl/bench", "dsl/vscode")
    for file in sorted((ROOT / room).rglob("*.py"))
]


def imported(file: Path) -> Iterator[tuple[str, list[str]]]:
    """The modules of the language that a file imports, absolutely, and the names that it takes from each."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found = [(node.module, [alias.name for alias in node.names])]
        elif isinstance(node, ast.Import):
            found = [(alias.name, []) for alias in node.names]
        else:
            continue
        yield from (each for each in found if each[0].split(".")[0] == "tidegate_dsl")


def test_every_package_has_its_row() -> None:
    assert [*MAY_IMPORT] == [package for package in MAY_IMPORT if (LANGUAGE / package).is_dir()]
    assert set(MAY_IMPORT) == {file.parent.name for file in LANGUAGE.glob("*/__init__.py")}
    assert [file.name for file in LANGUAGE.glob("*.py")] == ["__init__.py"]


def test_a_package_knows_only_those_above_it_in_the_table() -> None:
    above: set[str] = set()
    for package, allowed in MAY_IMPORT.items():
        assert allowed <= above, package
        above.add(package)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_what_its_row_says(package: str) -> None:
    found: set[str] = set()
    for file in (LANGUAGE / package).rglob("*.py"):
        for module, names in imported(file):
            found |= {module.split(".")[1]} if "." in module else {f"the root, for {name}" for name in names}
    assert found - {package} == MAY_IMPORT[package]


@pytest.mark.parametrize("file", OTHERS, ids=lambda file: str(file.relative_to(ROOT)))
def test_other_rooms_take_what_a_package_offers(file: Path) -> None:
    for module, names in imported(file):
        assert module.count(".") <= 1, f"{module} is inside a package"
        offered = import_module(module).__all__
        assert set(names) <= {*offered, *MAY_IMPORT}, module
