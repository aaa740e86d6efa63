"""Tests that the commands and files in documents exist: `make` targets, options, paths of modules."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from tailgate import cli
from tests.docs.pages import DOCS

ROOT = DOCS.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")])
COMMAND = re.compile(r"^(?:\$ |    )(?:\.venv/bin/)?tailgate ([a-z]+\b[^#\n]*)$", re.MULTILINE)
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


def test_every_command_and_option_has_an_example() -> None:
    shown: dict[str, set[str]] = {}
    for page in (DOCS / "operations").glob("*.md"):
        for line in COMMAND.findall(page.read_text()):
            words = shlex.split(line)
            name = " ".join(words[:2]) if words[0] == "log" else words[0]
            shown.setdefault(name, set()).update(word for word in words if word.startswith("--"))
    options = _options(cli.parser())
    assert options.keys() - shown.keys() == set(), "commands without an example in docs/operations"
    missing = set().union(*options.values()) - set().union(*shown.values()) - {"--help"}
    assert not missing, "options without an example in docs/operations"


def _options(parser: argparse.ArgumentParser, prefix: str = "") -> dict[str, set[str]]:
    """Returns the options of each command, by its words."""
    options: dict[str, set[str]] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                options |= _options(command, f"{prefix}{name} ")
    own = {option for action in parser._actions for option in action.option_strings if option.startswith("--")}
    return options or {prefix.strip(): own}


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
