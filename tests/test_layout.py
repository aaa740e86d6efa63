"""The structure of packages: files, functions and folders of moderate size, and no code in `__init__.py`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "tailgate"
PACKAGES = ("embedded", "engine", "examples", "formats", "gateway", "lake", "operations", "sinks", "sql", "values")
LINES_MAX = 400  # of a file
FUNCTION_LINES_MAX = 60
PARAMETERS_MAX = 7  # without self
FILES_MAX = 15  # in a folder, without __init__.py
FILES_MAX_OF = {"sql/functions": 20, "sql/plan": 16}


def files(package: str) -> list[Path]:
    """Returns the files of a package."""
    paths = sorted((SOURCE / package).rglob("*.py"))
    assert len(paths) > 5
    return paths


def shown(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("package", PACKAGES)
def test_files_are_small(package: str) -> None:
    sizes = {shown(path): len(path.read_text().splitlines()) for path in files(package)}
    assert {path: lines for path, lines in sizes.items() if lines > LINES_MAX} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_functions_are_small(package: str) -> None:
    large = {}
    for path in files(package):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = len([a for a in arguments if a.arg not in ("self", "cls")])
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX or count > PARAMETERS_MAX:
                    large[f"{shown(path)}: {node.name}"] = lines, count
    assert large == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_folders_are_small(package: str) -> None:
    sizes = {shown(folder): len(list(folder.glob("*.py"))) - 1 for folder in {path.parent for path in files(package)}}
    assert {folder: size for folder, size in sizes.items() if size > FILES_MAX_OF.get(folder, FILES_MAX)} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_tables_of_contents_have_no_code(package: str) -> None:
    """An `__init__.py` has a docstring, and imports of the names that the package exports."""
    for path in files(package):
        if path.name == "__init__.py":
            body = ast.parse(path.read_text()).body
            code = [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr) and not _is_all(node)]
            assert code == [], shown(path)


def _is_all(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]


def test_exceptions_to_the_types_have_a_reason() -> None:
    """A comment `type: ignore` names the kind of error, and a second comment says why the code is right."""
    lines = [f"{shown(path)}: {line.strip()}" for path in SOURCE.rglob("*.py") for line in path.read_text().splitlines()]
    ignored = [line for line in lines if "# type: ignore" in line]
    assert len(ignored) > 5
    assert [line for line in ignored if not re.search(r"# type: ignore\[[a-z-]+\]  # \w+", line)] == []


@pytest.mark.parametrize("folder", ["bench", "testing", "tools"])
def test_what_tests_share_with_others_is_outside_of_tests(folder: str) -> None:
    """Benchmarks and tools use `testing`, not the tests."""
    paths = list((SOURCE.parent / folder).rglob("*.py"))
    assert paths
    imported = {(path.name, name) for path in paths for name in re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.MULTILINE)}
    assert [path for path, name in imported if name == "tests"] == []
