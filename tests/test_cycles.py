"""No import cycle between the files of the product, nor between the packages of the Java library.

Imports inside functions and under TYPE_CHECKING count: they hide a cycle, they do not remove it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "tailgate"
JAVA = SOURCE / "engine" / "java" / "src" / "main" / "java" / "tailgate"
JAVA_IMPORT = re.compile(r"^import (?:static )?tailgate\.(\w+)\.", re.MULTILINE)

Graph = dict[str, set[str]]  # for each module, the modules that it imports


def imports(package: str = "") -> Graph:
    """Returns the import graph of a package, or of the product."""
    files: dict[str, Path] = {}
    for file in sorted((SOURCE / package).rglob("*.py")):
        name = ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts)
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


def java_packages() -> Graph:
    """Returns the import graph of the packages below `tailgate` in Java."""
    texts = {folder.name: "\n".join(file.read_text() for file in folder.rglob("*.java")) for folder in JAVA.iterdir() if folder.is_dir()}
    return {name: set(JAVA_IMPORT.findall(text)) - {name} for name, text in texts.items()}


def cycle(graph: Graph) -> list[str]:
    """Returns the modules of an import cycle, the first one again at the end; nothing if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_cycles() -> None:
    graph = imports()
    assert len(graph) > 500
    assert not cycle(graph)


def test_no_cycles_of_java_packages() -> None:
    graph = java_packages()
    assert {"circuit", "functions", "sources"} <= graph.keys()
    assert set().union(*graph.values()) <= graph.keys()
    assert not cycle(graph)


def test_cycles_are_found() -> None:
    assert set(cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}
