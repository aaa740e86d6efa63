"""The structure of the SQL front end: files, functions and folders of moderate size, no cycle of folders."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tailgate import sql
from tests.test_cycles import imports

ROOT = Path(sql.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
LINES_MAX = 400  # of a file
FUNCTION_LINES_MAX = 60
PARAMETERS_MAX = 7  # without self
FILES_MAX = 17  # in a folder


def test_files_are_small() -> None:
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    assert {path: lines for path, lines in sizes.items() if lines > LINES_MAX} == {}


def test_functions_are_small() -> None:
    large = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = len([a for a in arguments if a.arg not in ("self", "cls")])
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX or count > PARAMETERS_MAX:
                    large[f"{path.relative_to(ROOT)}: {node.name}"] = lines, count
    assert large == {}


def test_folders_are_small() -> None:
    sizes = {folder: len(list(folder.glob("*.py"))) for folder in {path.parent for path in FILES}}
    assert {str(folder): size for folder, size in sizes.items() if size > FILES_MAX} == {}


def test_no_cycle_of_folders() -> None:
    """The modules of `sql` itself do not count: some are used by all folders, others use all.

    A folder whose table of contents imports the folders in it (`compute`, `statements`) counts as one with them.
    """
    folders: dict[Path, set[Path]] = {}
    modules = {".".join(["tailgate", "sql", *path.relative_to(ROOT).with_suffix("").parts]): path for path in FILES}
    for module, below in imports("sql").items():
        if module in modules:
            folder = _folder(modules[module])
            folders.setdefault(folder, set()).update({_folder(modules[m]) for m in below if m in modules} - {folder})
    del folders[ROOT]
    try:
        TopologicalSorter({folder: below - {ROOT} for folder, below in folders.items()}).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(str(folder.relative_to(ROOT)) for folder in error.args[1])) from None


def _folder(path: Path) -> Path:
    first = path.relative_to(ROOT).parts[0]
    return ROOT / first if first in ("compute", "statements") else path.parent
