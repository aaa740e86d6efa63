"""Runs the examples of pages on PostgreSQL.

A materialized view becomes a plain view, which always shows its query's rows. Examples marked as
Tailgate's are skipped, and so are details and hints that only one of the two prints.
"""

from __future__ import annotations

import re

import psycopg
from psycopg.conninfo import make_conninfo

from tests.docs.pages import Example, Part, same
from tests.docs.terminal import Terminal


def differences(server: str, page: list[Part]) -> list[str]:
    """Returns the examples for which PostgreSQL prints something else than the page."""
    with psycopg.connect(server, autocommit=True) as own:
        own.execute("DROP DATABASE IF EXISTS pages WITH (FORCE)")
        own.execute("CREATE DATABASE pages")
    terminal = Terminal(make_conninfo(server, dbname="pages"))
    terminal.type("SET client_min_messages = notice")
    differing = []
    for part in page:
        if isinstance(part, Example) and not part.ours:
            got = terminal.type(plain(part.statement), part.data)
            expected = tuple(plain(line) for line in part.output)
            for word in ("DETAIL:", "HINT:", "CONTEXT:"):
                if not all(any(line.startswith(word) for line in lines) for lines in (expected, got)):
                    expected, got = (tuple(x for x in lines if not x.startswith(word)) for lines in (expected, got))
            if not same(expected, got, part.ordered):
                differing.append(
                    f"line {part.line}: {part.statement}\nthe page says\n" + "\n".join(expected) + "\nPostgreSQL\n" + "\n".join(got)
                )
    terminal.close()
    with psycopg.connect(server, autocommit=True) as own:
        own.execute("DROP DATABASE pages WITH (FORCE)")
        for (role,) in own.execute("SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_|^postgres$'").fetchall():
            own.execute(psycopg.sql.SQL("DROP ROLE {}").format(psycopg.sql.Identifier(role)))
    return differing


def plain(text: str) -> str:
    """Replaces materialized views by plain views in a text."""
    text = re.sub(r"\bCREATE OR REPLACE MATERIALIZED VIEW\b", "CREATE OR REPLACE VIEW", text)
    text = re.sub(r"(?<!AS )\bMATERIALIZED VIEW\b", "VIEW", text)
    return re.sub(r"\bmaterialized view\b", "view", text)
