"""Tests that docs/architecture.md is short, names only existing things, and has a complete glossary."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tailgate.cli import parser
from tailgate.lake.system_relations import COLUMNS
from tests.docs.pages import DOCS

ROOT = DOCS.parent
TEXT = (DOCS / "architecture.md").read_text()
LINES_MAX, CHARACTERS_MAX = 300, 100
JAVA = ROOT / "tailgate" / "engine" / "java" / "src" / "main" / "java" / "tailgate"
OPERATOR = re.compile(r"^(?:public )?(?:final )?class (\w+) extends (?:Operator|Partitioned)\b", re.MULTILINE)
OPTION = re.compile(r"`(?:tailgate \w+ )?(--[a-z-]+)")


def glossary() -> list[str]:
    """Returns the terms of the glossary, without backticks; a row may have several."""
    rows = re.findall(r"^\| ([^|]+) \|", TEXT[TEXT.index("## 8. Glossary") :], re.MULTILINE)
    return [term.strip("` ") for row in rows if row not in ("term", "---") for term in row.split(",")]


def packages() -> set[str]:
    return {folder.parent.name for folder in (ROOT / "tailgate").glob("*/__init__.py")} | {"cli"}


def operators() -> set[str]:
    return {match[1] for path in JAVA.glob("**/*.java") for match in OPERATOR.finditer(path.read_text())}


def test_its_length() -> None:
    lines = TEXT.splitlines()
    assert len(lines) <= LINES_MAX
    assert not [number for number, line in enumerate(lines, 1) if len(line) > CHARACTERS_MAX]


def test_every_relation_that_it_names_exists() -> None:
    relations = set(re.findall(r"`(tailgate\.\w+)`", TEXT))
    assert relations
    assert relations <= {f"tailgate.{name}" for name in COLUMNS}


def test_every_option_that_it_names_exists() -> None:
    subparsers = next(action for action in parser()._actions if action.choices)
    options = {option for command in dict(subparsers.choices or {}).values() for option in command._option_string_actions}
    assert {"--take-over"} <= set(OPTION.findall(TEXT)) <= options


@pytest.mark.parametrize("kind", ["package", "operator", "system relation"])
def test_the_glossary_defines(kind: str) -> None:
    names = {"package": packages, "operator": operators, "system relation": lambda: {f"tailgate.{name}" for name in COLUMNS}}[kind]()
    assert len(names) > 5
    missing = names - set(glossary())
    assert not missing, f"docs/architecture.md, section 8, does not define the {kind} {', '.join(sorted(missing))}"


def test_the_glossary_defines_each_term_once() -> None:
    assert not [term for term, count in Counter(glossary()).items() if count > 1]
