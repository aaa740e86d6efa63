"""Signs before columns of each numeric type, in materialized views."""

from __future__ import annotations

from decimal import Decimal

import psycopg


def test_signs_keep_the_type_that_the_view_declares(sql: psycopg.Connection) -> None:
    """A numeric with a sign has 38 digits, also if its operand has fewer."""
    sql.execute("CREATE TABLE signed (a smallint PRIMARY KEY, b numeric(10, 2), c real)")
    sql.execute("INSERT INTO signed VALUES (1, 1.5, 2.5), (2, -2.5, 0)")
    columns = "+ a AS a, - a AS minus_a, + b AS b, - b AS minus_b, + c AS c, - c AS minus_c"
    sql.execute(f"CREATE MATERIALIZED VIEW signs AS SELECT {columns} FROM signed")
    assert sql.execute("SELECT * FROM signs ORDER BY a").fetchall() == [
        (1, -1, Decimal("1.50"), Decimal("-1.50"), 2.5, -2.5),
        (2, -2, Decimal("-2.50"), Decimal("2.50"), 0.0, -0.0),
    ]
    sql.execute("CREATE MATERIALIZED VIEW least_signs AS SELECT min(+ b) AS least, sum(+ b) AS total FROM signed")
    assert sql.execute("SELECT least, total FROM least_signs").fetchall() == [(Decimal("-2.50"), Decimal("-1.00"))]
