"""docs/sql/functions.md has every function with its signatures, and its examples are what PostgreSQL and we answer."""

from __future__ import annotations

import duckdb
import psycopg

from sql.duckdb_functions import install
from tests.sql.function_docs import EXAMPLE, FILE, LINE, NONE, asked, entries, same

LINES = [m for line in FILE.read_text().splitlines() if (m := LINE.match(line)) and m["name"].startswith("`")]


def test_complete() -> None:
    wanted = [(n, adhoc, "; ".join(signatures)) for named in entries().values() for n, (adhoc, signatures) in named.items()]
    found = [(m["name"].strip("`").replace("\\|", "|"), m["adhoc"] is not None, m["signatures"]) for m in LINES]
    assert found == wanted, "write it anew: python -m tests.sql.function_docs DSN"


def test_examples(postgres: str) -> None:
    engine = duckdb.connect()
    install(engine)
    wrong = []
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("SET TimeZone = 'UTC'")
        for line in LINES:
            example = EXAMPLE.match(line["example"].replace("\\|", "|"))
            if example is None:
                if line["name"].strip("`") not in NONE:
                    wrong.append(f"{line['name']} has no example")
                continue
            answer = asked(server, example["sql"])
            if answer is None or answer[0] != example["value"]:
                wrong.append(f"{example['sql']}: PostgreSQL says {answer}")
            elif not same(engine, example["sql"], answer):
                wrong.append(f"{example['sql']}: not {answer}")
    assert not wrong, "\n".join(wrong)
