"""docs/sql/functions.md has every function with its signatures, and right results."""

from __future__ import annotations

import dataclasses
from typing import Any

import duckdb
import psycopg

from tailgate.lake.types import Type
from tailgate.sql.functions.entry import Function
from tailgate.sql.functions.text import TYPE_NAME
from tailgate.sql.render.duckdb_functions import install
from tests.sql.corpus import Expression, bound
from tests.sql.function_docs import EXAMPLE, EXTENSIONS, FAMILIES, answer_of, entries, has_result_on_duckdb, lines
from tests.sql.oracle import pgcrypto


def test_every_function_is_documented() -> None:
    expected = [(n, adhoc, "; ".join(signatures)) for family in entries().values() for n, (adhoc, signatures) in family.items()]
    documented = [(name, m["adhoc"] is not None, m["signatures"]) for (_, name), m in lines().items()]
    assert documented == expected, "write the page again: python -m tests.sql.function_docs DSN"


def test_every_function_has_a_description() -> None:
    assert not [name for name, m in lines().items() if not m["does"].strip()]


def test_examples(postgres: str) -> None:
    """Every example calls its function and has the documented result."""
    engine = duckdb.connect()
    install(engine)
    wrong = []
    with psycopg.connect(postgres, autocommit=True) as server, pgcrypto(server):
        server.execute("SET TimeZone = 'UTC'")
        for (family, name), line in lines().items():
            example = EXAMPLE.match(line["example"].replace("\\|", "|"))
            if example is None:
                wrong.append(f"{family}, {name} has no example")
                continue
            query = bound(Expression("", example["sql"], None, "", ""))
            rows = (
                {(TYPE_NAME.name, TYPE_NAME.duckdb)}
                if name == TYPE_NAME.name
                else {(name, form) for r in FAMILIES[family] if r.name.partition(":")[0] == name for form in (r.duckdb, r.exact[1])}
            )
            if "NULL" not in example["sql"] and not calls(query.plan) & rows:  # a strict function of NULL is not called
                wrong.append(f"{family}: {example['sql']} does not call {name}")
            type = query.columns[0].type
            documented = example["value"], str(Type(type.name, is_array=type.is_array))
            answer = documented if name in EXTENSIONS else answer_of(server, example["sql"])
            if answer is None or answer[0] != example["value"]:
                wrong.append(f"{example['sql']}: PostgreSQL returns {answer}")
            elif not has_result_on_duckdb(engine, example["sql"], answer):
                wrong.append(f"{example['sql']}: not {answer}")
    assert not wrong, "\n".join(wrong)


def calls(part: Any) -> set[tuple[str, str]]:
    """Returns the name and DuckDB template of each function in a part of a plan."""
    if isinstance(part, Function):
        return {(part.name.partition(":")[0], part.duckdb)}
    if isinstance(part, tuple):
        return set().union(*map(calls, part))
    if not dataclasses.is_dataclass(part):
        return set()
    return set().union(*(calls(getattr(part, f.name)) for f in dataclasses.fields(part)))
