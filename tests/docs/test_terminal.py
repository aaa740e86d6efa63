"""Tests that the terminal prints what psql prints for the examples that PostgreSQL supports."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.docs.oracle import plain
from tests.docs.pages import Example, parts
from tests.docs.terminal import Terminal
from tests.docs.test_pages import PAGES as ALL

PAGES = [p for p in ALL if p.stem != "roles"]  # its roles belong to the whole server

MARK = "=====" * 4


@pytest.mark.clients
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_psql(postgres: str, page: Path) -> None:
    examples = [p for p in parts(page.read_text()) if isinstance(p, Example) and not p.ours]
    ours, theirs = typed(fresh(postgres), examples), psql(fresh(postgres), examples)
    for example, a, b in zip(examples, ours, theirs, strict=True):
        assert "\n".join(a) == b, example.statement


def fresh(server: str) -> str:
    with psycopg.connect(server, autocommit=True) as own:
        own.execute("DROP DATABASE IF EXISTS typed WITH (FORCE)")
        own.execute("CREATE DATABASE typed")
    return make_conninfo(server, dbname="typed")


def typed(dsn: str, examples: list[Example]) -> list[tuple[str, ...]]:
    terminal = Terminal(dsn)
    outputs = [terminal.type(plain(e.statement), e.data) for e in examples]
    terminal.close()
    return outputs


def psql(dsn: str, examples: list[Example]) -> list[str]:
    script = "\\pset null NULL\n\\set VERBOSITY verbose\n\\set SHOW_CONTEXT always\n"
    for e in examples:
        script += f"\\echo {MARK}\n{plain(e.statement)}\n" + "".join(f"{line}\n" for line in (*e.data, "\\.") if e.data)
    command = ["stdbuf", "-oL", "psql", "-X", dsn]
    text = subprocess.run(
        command, input=script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False
    ).stdout
    text = re.sub(r"^(LINE \d+: .*\n *\^|(LOCATION|(SCHEMA|TABLE|COLUMN|CONSTRAINT|DATATYPE) NAME): .*)\n", "", text, flags=re.MULTILINE)
    return ["\n".join(line.rstrip() for line in part.splitlines() if line != "" or "COPY" in part) for part in text.split(MARK + "\n")[1:]]
