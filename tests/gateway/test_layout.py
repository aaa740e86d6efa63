"""The structure of the gateway: no cycle of folders, folders of moderate size, no code in `__init__.py`."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tailgate import gateway

ROOT = Path(gateway.__file__).parent
PACKAGE = gateway.__name__
FILES_MAX = 16  # Python files of a folder, with __init__.py
MODULES = {".".join([PACKAGE, *path.relative_to(ROOT).with_suffix("").parts]): path for path in ROOT.rglob("*.py")}


def imports(path: Path) -> set[str]:
    """Returns the gateway's modules that a file imports anywhere: inside functions and for type checks, too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names & MODULES.keys()


def test_no_cycle_of_folders() -> None:
    folders: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        folder = module.rpartition(".")[0]
        folders.setdefault(folder, set()).update({name.rpartition(".")[0] for name in imports(path)} - {folder})
    del folders[PACKAGE]  # its own modules are the entry point, and the client of the engine that sessions use
    try:
        TopologicalSorter({folder: below - {PACKAGE} for folder, below in folders.items()}).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_folders_are_small() -> None:
    sizes = {folder: len(list(folder.glob("*.py"))) for folder in {path.parent for path in MODULES.values()}}
    assert {str(folder): size for folder, size in sizes.items() if size > FILES_MAX} == {}


def test_packages_have_no_code() -> None:
    """An `__init__.py` has a docstring, except for the one that sets an environment variable before DuckDB is loaded."""
    code = {
        str(path): len(ast.parse(path.read_text()).body)
        for path in ROOT.rglob("__init__.py")
        if path.parent != ROOT and len(ast.parse(path.read_text()).body) > 1
    }
    assert code == {}
