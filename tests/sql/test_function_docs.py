"""docs/sql/functions.md has every function with its signatures, and its examples are what PostgreSQL and we answer."""

from __future__ import annotations

import dataclasses
from typing import Any

import duckdb
import psycopg

from lake.types import Type
from sql.duckdb_functions import install
from sql.functions.entry import Function
from tests.sql.corpus import Expression, bound
from tests.sql.function_docs import EXAMPLE, FAMILIES, OURS, asked, entries, lines, same


def test_complete() -> None:
    wanted = [(n, adhoc, "; ".join(signatures)) for named in entries().values() for n, (adhoc, signatures) in named.items()]
    found = [(name, m["adhoc"] is not None, m["signatures"]) for (_, name), m in lines().items()]
    assert found == wanted, "write it anew: python -m tests.sql.function_docs DSN"


def test_each_says_what_it_does() -> None:
    assert not [name for name, m in lines().items() if not m["does"].strip()]


def test_examples(postgres: str) -> None:
    """Each calls what it is an example of, and is answered by PostgreSQL and by us as it says."""
    engine = duckdb.connect()
    install(engine)
    wrong = []
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("SET TimeZone = 'UTC'")
        for (family, name), line in lines().items():
            example = EXAMPLE.match(line["example"].replace("\\|", "|"))
            if example is None:
                wrong.append(f"{family}, {name} has no example")
                continue
            query = bound(Expression("", example["sql"], None, "", ""))
            if not called(query.plan) & {(name, r.duckdb) for r in FAMILIES[family] if r.name.partition(":")[0] == name}:
                wrong.append(f"{family}: {example['sql']} does not call {name}")
            type = query.columns[0].type
            answer = asked(server, example["sql"]) if name not in OURS else (example["value"], str(Type(type.name, is_array=type.is_array)))
            if answer is None or answer[0] != example["value"]:
                wrong.append(f"{example['sql']}: PostgreSQL says {answer}")
            elif not same(engine, example["sql"], answer):
                wrong.append(f"{example['sql']}: not {answer}")
    assert not wrong, "\n".join(wrong)


def called(part: Any) -> set[tuple[str, str]]:
    """Name and template of each function that a plan, or a part of one, calls."""
    if isinstance(part, Function):
        return {(part.name.partition(":")[0], part.duckdb)}
    if isinstance(part, tuple):
        return set().union(*map(called, part))
    if not dataclasses.is_dataclass(part):
        return set()
    return set().union(*(called(getattr(part, f.name)) for f in dataclasses.fields(part)))
