"""The error classes: named by PostgreSQL's condition names, and raised by these names."""

from __future__ import annotations

import ast
from pathlib import Path

import psycopg.errors
import pytest

import tailgate
from tailgate.lake.errors import BY_SQLSTATE

FILES = sorted(Path(next(iter(tailgate.__path__))).rglob("*.py"))


@pytest.mark.parametrize("sqlstate", sorted(BY_SQLSTATE))
def test_names_are_those_of_postgresql(sqlstate: str) -> None:
    """An underscore at the end keeps a name apart from one of Python's exceptions."""
    assert BY_SQLSTATE[sqlstate].__name__.rstrip("_") == psycopg.errors.lookup(sqlstate).__name__


def test_a_constant_sqlstate_is_raised_by_its_class() -> None:
    """`of()` is for a SQLSTATE that is known only as text: from a row of errors, or from another process."""
    assert len(FILES) > 300
    calls = [f"{path}:{node.lineno}" for path in FILES for node in ast.walk(ast.parse(path.read_text())) if _names_a_sqlstate(node)]
    assert calls == []


def _names_a_sqlstate(node: ast.AST) -> bool:
    """Returns whether a node is a call of `of()` with a SQLSTATE in the text of the program."""
    if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    sqlstate = node.args[0].value
    return name == "of" and isinstance(sqlstate, str) and len(sqlstate) == 5 and sqlstate.isalnum() and sqlstate.upper() == sqlstate
