"""The classes of threads."""

from __future__ import annotations

import ast
import threading
from pathlib import Path

import tailgate

DEFINED = {"__init__", "run"}


def test_no_thread_hides_a_method_of_its_base_class() -> None:
    """Python calls also private ones: a thread with its own `_delete` stays in the list of threads when it has ended."""
    hidden = []
    for path in Path(tailgate.__file__).parent.rglob("*.py"):
        for definition in ast.walk(ast.parse(path.read_text())):
            if isinstance(definition, ast.ClassDef) and any(ast.unparse(base).endswith("Thread") for base in definition.bases):
                methods = {f.name for f in definition.body if isinstance(f, ast.FunctionDef)}
                hidden += [f"{definition.name}.{name}" for name in methods & (set(dir(threading.Thread)) - DEFINED)]
    assert hidden == []
