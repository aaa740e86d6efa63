"""Tests that the commands and files in documents exist: `make` targets, options, paths of modules."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tailgate import cli
from tests.docs.pages import DOCS

ROOT = DOCS.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")])
WORDS = "up|demo|engine|jars|gateway|presto|sinks|log|config|status|doctor|top|bundle"
COMMAND = re.compile(rf"^(?:\$ |    )?(?:\.venv/bin/)?tailgate ((?:{WORDS})\b[^#\n]*)$", re.MULTILINE)
MAKE = re.compile(r"(?:^(?:\$ |    )|`)make ([a-z][a-z-]*)", re.MULTILINE)
PATH = re.compile(r"`((?:bench|docs|jars|tailgate|tests|tools)/[\w/.-]+)`")
EXACT = (ROOT / "CONTRIBUTING.md", DOCS / "architecture.md", DOCS / "walk.md")  # they name modules by path


def test_every_command_line_is_one_that_the_program_takes() -> None:
    lines = [(page.name, line) for page in PAGES for line in COMMAND.findall(page.read_text())]
    assert len(lines) > 1
    for page, line in lines:
        try:
            cli.parser().parse_args(shlex.split(line))
        except SystemExit:
            pytest.fail(f"{page}: tailgate {line}")


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    missing = {(page.name, name) for page in PAGES for name in MAKE.findall(page.read_text()) if name not in targets}
    assert not missing


@pytest.mark.parametrize("page", EXACT, ids=lambda page: page.stem)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    paths = PATH.findall(page.read_text())
    assert len(paths) > 10
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "README.md").read_text()
    missing = [page.name for page in DOCS.glob("*.md") if page.name != "README.md" and f"({page.name})" not in index]
    assert not missing, f"docs/README.md does not link {', '.join(missing)}"
