"""Literals of a view's query reach Spark unchanged.

Spark does not substitute variables of the environment or settings in them.
"""

from __future__ import annotations

import psycopg
import pytest

pytestmark = pytest.mark.spark

TEXTS = (
    "${env:PATH}",
    "${env:HOME}",
    "${system:user.dir}",
    "${spark.master}",
    "${hivevar:x}",
    "$${env:PATH}",
    "${${env:PATH}}",
    "\\${env:PATH}",
)


def test_a_text_that_looks_like_a_variable_is_a_text(sql: psycopg.Connection) -> None:
    sql.execute("CREATE TABLE texts (t text PRIMARY KEY)")
    sql.execute("INSERT INTO texts VALUES ('x')")
    columns = ", ".join(f"t || '{text}'" for text in TEXTS)
    names = ", ".join(f"c{i}" for i in range(len(TEXTS)))
    sql.execute(f"CREATE MATERIALIZED VIEW literals ({names}) AS SELECT {columns} FROM texts WHERE t || '${{env:PATH}}' <> ''")  # type: ignore[call-overload]
    assert sql.execute("SELECT * FROM literals").fetchall() == [tuple("x" + text for text in TEXTS)]
