"""Tests the examples of docs/sql on Tailgate and PostgreSQL, and that the pages are complete."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tailgate.lake.errors import TailgateError
from tailgate.lake.types import FACTS
from tailgate.sql.statements import parse
from tests.docs.coverage import required_words, shown
from tests.docs.oracle import differences
from tests.docs.pages import DOCS, SQL, Example, examples, parts, same, written
from tests.docs.system import System
from tests.docs.terminal import VARIABLE, Terminal

UNPRINTABLE = ("CopyFrom.format = 'binary'", "CopyTo.format = 'binary'", "DeclareCursor.binary")  # binary output cannot be shown
OF_ACTIONS = ("SequenceOptions.name",)  # only in actions of ALTER TABLE, whose parts are not examined
RESOLVED = ("Tail.limit", "Include.format", "Ksqldb.")  # beginnings of words; statements of ksqlDB become these when they are resolved
# `ksqldb` is before the other pages of ksqlDB: it shows ids of queries, which are numbered in their order
PAGES = sorted((p for p in SQL.rglob("*.md") if "```sql" in p.read_text()), key=lambda p: (p.parent, p.stem))
KSQLDB = [page for page in PAGES if page.stem.startswith("ksqldb")]  # their rows come through topics
SETTLE_S = 120.0  # until sinks have started and written: seconds, longer on a busy machine
OF_OTHERS = re.compile(r"SHOW|PRINT|SELECT .* FROM tailgate\.", re.DOTALL)  # statements about the state of other processes
# Pages that run on Tailgate only.
EXAMPLES = [*sorted((DOCS.parent / "tailgate" / "examples").glob("*/README.md"))]


def _name(page: Path) -> str:
    return page.parent.name if page.stem == "README" and page not in PAGES else page.stem


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES], ids=_name)
def test_examples(system: System, page: Path) -> None:
    check_examples(system, page)


def check_examples(system: System, page: Path) -> None:
    """Checks that the examples of a page print the lines that it shows."""
    wrong = []
    terminal = system.terminal()
    try:
        for part in parts(page.read_text()):
            got = system.run(terminal, part, page.parent)
            if isinstance(part, Example) and (page in [*EXAMPLES, *KSQLDB] or OF_OTHERS.match(part.statement)):
                got = _at_last(system, terminal, part, page.parent, got)
            if isinstance(part, Example) and not same(part.output, got, part.ordered):
                wrong.append(f"{page}:{part.line}: {part.statement}\n" + "\n".join(got))
    finally:
        terminal.close()
        system.clear()
    assert not wrong, "\n\n".join(wrong)


def _at_last(system: System, terminal: Terminal, example: Example, folder: Path, got: tuple[str, ...]) -> tuple[str, ...]:
    """Repeats an example until it prints the expected lines or the time is over, for sinks write asynchronously."""
    deadline = time.monotonic() + SETTLE_S
    asks = re.match("SELECT|SHOW|PRINT", example.statement) or any(line.startswith("ERROR") for line in got)
    while asks and not same(example.output, got, example.ordered) and time.monotonic() < deadline:
        time.sleep(0.2)
        got = system.run(terminal, example, folder)
    return got


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_postgresql_prints_the_same(postgres: str, page: Path) -> None:
    assert not (wrong := differences(postgres, list(parts(page.read_text())))), "\n\n".join(wrong)


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES, DOCS / "quickstart.md"], ids=_name)
def test_a_page_is_made_of_its_parts(page: Path) -> None:
    assert written(list(parts(page.read_text()))) == page.read_text()


def test_every_statement_is_documented() -> None:
    words = {*UNPRINTABLE, *OF_ACTIONS}
    for page in PAGES:
        for example in examples(page):
            text = example.statement.replace("\\gset", ";")
            for variant in (text, VARIABLE.sub("1", text)):  # `:name` is a parameter of an endpoint, or a variable of psql
                with suppress(TailgateError):  # an example of an error
                    words |= shown(parse(variant))
    missing = sorted(word for word in required_words() - words if not word.startswith(RESOLVED))
    assert not missing, f"no page of docs/sql has an example of {', '.join(missing)}"


def test_every_type_is_documented() -> None:
    rows = re.findall(r"^\| `([^`]+)`", (SQL / "types.md").read_text(), re.MULTILINE)
    missing = {f.sql for f in FACTS.values() if f.category not in "XP"} - set(rows)
    assert not missing, f"docs/sql/types.md has no row of {', '.join(sorted(missing))}"


def test_every_page_is_in_the_index() -> None:
    index = (SQL / "README.md").read_text()
    missing = [str(p.relative_to(SQL)) for p in SQL.rglob("*.md") if p.name != "README.md" and f"({p.relative_to(SQL)})" not in index]
    assert not missing, f"docs/sql/README.md does not link {', '.join(missing)}"
