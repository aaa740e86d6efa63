"""No import cycle between the files of a package.

Imports inside functions and under TYPE_CHECKING count: they hide a cycle, they do not remove it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "tailgate" if (ROOT / "tailgate").is_dir() else ROOT  # the folder of the packages
PREFIX = "tailgate." if (ROOT / "tailgate").is_dir() else ""
PACKAGES = ("embedded", "engine", "examples", "gateway", "lake", "sinks", "sql", "values")
# The number of files in cycles, for packages that still have some. A number may only fall.
CEILINGS = {"lake": 12}

Graph = dict[str, set[str]]  # for each module, the modules that it imports


def imports(package: str) -> Graph:
    """Returns the import graph of a package."""
    files: dict[str, Path] = {}
    for file in sorted((SOURCE / package).rglob("*.py")):
        name = PREFIX + ".".join(file.relative_to(SOURCE).with_suffix("").parts)
        files[name.removesuffix(".__init__")] = file
    return {name: {i for i in _imported(file, name, files) if i != name} for name, file in files.items()}


def _imported(file: Path, name: str, files: dict[str, Path]) -> Iterator[str]:
    parent = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(parent.split(".")[: len(parent.split(".")) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                if f"{module}.{alias.name}" in files:
                    yield f"{module}.{alias.name}"
                elif module in files:
                    yield module


def reachable(graph: Graph, start: str) -> set[str]:
    """Returns the modules that a module imports, directly or not."""
    modules: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - modules
        modules |= new
        waiting += new
    return modules


def cyclic(graph: Graph) -> list[str]:
    """Returns the modules that import themselves through others."""
    return sorted(name for name in graph if name in reachable(graph, name))


@pytest.mark.parametrize("package", [p for p in PACKAGES if (SOURCE / p).is_dir()])
def test_no_cycles(package: str) -> None:
    files = cyclic(imports(package))
    assert len(files) <= CEILINGS.get(package, 0), f"files in import cycles: {', '.join(files)}"


def test_cycles_are_found() -> None:
    assert cyclic({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a", "b", "c"]
