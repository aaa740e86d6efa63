"""Errors of type json, which has no comparisons, compared with PostgreSQL 15."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import TailgateError
from tailgate.sql.bind import bind_query

J = "(SELECT '1'::json AS j, 1 AS i) t"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT j = j FROM {J}",
        f"SELECT j < '2' FROM {J}",
        f"SELECT j IN (j, j) FROM {J}",
        f"SELECT j IS DISTINCT FROM '1' FROM {J}",
        f"SELECT ARRAY[j] = ARRAY[j] FROM {J}",
        f"SELECT nullif(j, '1') FROM {J}",
        f"SELECT greatest(j, '1') FROM {J}",
        f"SELECT CASE j WHEN '1' THEN 2 END FROM {J}",
        f"SELECT i FROM {J} ORDER BY j",
        f"SELECT j FROM {J} ORDER BY 1",
        f"SELECT j, count(*) FROM {J} GROUP BY j",
        f"SELECT DISTINCT j FROM {J}",
        f"SELECT DISTINCT ON (j) i FROM {J}",
        f"SELECT j FROM {J} UNION SELECT j FROM {J}",
        f"SELECT j FROM {J} EXCEPT ALL SELECT j FROM {J}",
        f"SELECT j FROM {J} UNION ALL SELECT j FROM {J} ORDER BY 1",
        f"SELECT count(*) OVER (PARTITION BY j) FROM {J}",
        f"SELECT count(*) OVER (ORDER BY j) FROM {J}",
        f"SELECT count(DISTINCT j) FROM {J}",
        f"SELECT json_agg(DISTINCT j) FROM {J}",
        f"SELECT json_agg(i ORDER BY j) FROM {J}",
        f"SELECT max(j) FROM {J}",
        f"SELECT count(*) FROM {J} JOIN (SELECT '1'::json AS j) u USING (j)",
        f"SELECT (j)['a'] FROM {J}",
        f"SELECT j @> '1' FROM {J}",
        f"SELECT j::int FROM {J}",
        "SELECT '{'::json",
        "SELECT json_build_object(1)",
    ],
)
def test_errors(text: str, server: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.Error) as theirs:
        server.execute(text)  # type: ignore[arg-type]
    with pytest.raises(TailgateError) as ours:
        bind_query(text, Catalog())
    diagnostics = theirs.value.diag
    assert (ours.value.sqlstate, str(ours.value)) == (diagnostics.sqlstate, diagnostics.message_primary)
