"""Tests that docs/seams.md names only code that exists, and CONTRIBUTING.md only files that exist."""

from __future__ import annotations

import importlib
import re

from tests.docs.pages import DOCS

PACKAGES = "lake|formats|sql|values|engine|gateway|sinks|embedded"
NAME = re.compile(rf"`(?:tailgate\.)?((?:{PACKAGES})(?:\.\w+)+)")
PATH = re.compile(r"`((?:tailgate|tests|tools|bench|docs)/[\w./]+\w)/?`")
OF_AN_INSTANCE = re.compile(r"lake\.(log\.\w+|id|path|catalog_at)$|engine\.json$")  # of a `Lake`; a file


def exists(name: str) -> bool:
    """Returns whether a dotted name below `tailgate` is a module, or an attribute in one."""
    parts = ["tailgate", *name.split(".")]
    for count in range(len(parts), 1, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            annotations = getattr(value, "__annotations__", {})
            value = getattr(value, part, annotations.get(part))
        return value is not None
    return False


def test_every_name_exists() -> None:
    names = set(NAME.findall((DOCS / "seams.md").read_text()))
    assert len(names) > 50
    missing = sorted(name for name in names if not OF_AN_INSTANCE.search(name) and not exists(name))
    assert not missing


def test_every_path_of_the_recipes_exists() -> None:
    paths = set(PATH.findall((DOCS.parent / "CONTRIBUTING.md").read_text()))
    assert len(paths) > 40
    missing = sorted(path for path in paths if not (DOCS.parent / path).exists())
    assert not missing


def test_missing_names_are_found() -> None:
    assert exists("sql.bind.bind_query")
    assert not exists("sql.bind.bound_query")
    assert not exists("sql.binding")
