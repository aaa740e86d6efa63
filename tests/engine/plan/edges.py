"""Queries for edge cases: few values in many copies, with NULLs, ties, errors and extreme values.

They read three tables: `e` with duplicate rows, `u` with one row for each `a`, and `p`, a topic
that is not stored. Each view takes the next query and chooses at random among the alternatives in
braces.
"""

from __future__ import annotations

import random
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

from tailgate.lake.types import FLOAT8, GENERAL, INT4, INT8, TEXT, TIMESTAMP, Field, Type
from testing.random_queries import START, Row, Table
from testing.reference.general import form

NAN = float("nan")
NUMBERS = (  # several display scales of equal values; small, large and long ones
    *("0", "0.00", "1", "1.0", "1.00", "2.50", "2.5", "-1.5", "-1.50", "7", "0.1", "-3", "1.000", "100", "1e2", "0.0003"),
    *("1e-20", "-1e-30", "1.00000000000000000001", "0.000000000000000000001", "123456789012345678.5", "99999999999999999.99"),
    *("1e17", "-1e17", "1e40", "-1e40", "1e40", "123456789012345678901234567890123456789.5", "1e300"),
)
SPECIAL = ("NaN", "Infinity", "-Infinity")
_COLUMNS = (
    ("a", INT4), ("b", INT4), ("x", TEXT), ("f", FLOAT8), ("g", INT8), ("n", Type("numeric", (10, 2))), ("iv", Type("interval")),
    ("at", TIMESTAMP), ("until", TIMESTAMP), ("q", GENERAL),
)  # fmt: skip
TABLES = {"e": _COLUMNS, "u": (("a", INT4), *_COLUMNS[1:3], ("g", INT8)), "p": tuple(c for c in _COLUMNS if c[0] not in ("iv", "f", "q"))}


def tables(first: int) -> tuple[Table, ...]:
    """Returns the three tables, with ids from `first` on."""
    return tuple(
        Table(
            first + 4 * i, name, tuple(Field(c, t, c != "a" or name != "u") for c, t in columns), (0,) if name == "u" else None, name == "p"
        )
        for i, (name, columns) in enumerate(TABLES.items())
    )


def row(r: random.Random, table: Table) -> Row:
    return tuple(_value(r, c) for c in table.columns)


def general(r: random.Random) -> tuple[Any, ...] | None:
    """Returns the stored form of a random numeric without a declared precision; mostly one of few."""
    choice = r.random()
    if choice < 0.1:
        return None
    text = r.choice(SPECIAL) if choice < 0.17 else r.choice(NUMBERS[:10] if choice < 0.7 else NUMBERS)
    return form(f"{Decimal(text):f}")


def _value(r: random.Random, column: Field) -> object:
    if column.nullable and r.random() < 0.15:
        return None
    match column.name:
        case "q":
            return general(r)
        case "a" | "b":
            return r.randint(0, 2)
        case "x":
            return r.choice(["", "x", "y"])
        case "f":
            return r.choice([0.0, 0.0, -0.0, 1.5, -1.5, -3.0, NAN])
        case "g":
            return r.choice([1, 2**63 - 1, 2**63 - 1, -(2**63)])
        case "n":
            return Decimal(r.choice([0, 100, 250])) / 100
        case "iv":
            return (0, r.randint(0, 1), r.randint(0, 2) * 1_800_000_000)
    return START + timedelta(hours=r.randint(0, 12))


def filled(query: str, r: random.Random) -> str:
    """Replaces each `{one|or another}` by one of its alternatives."""
    return re.sub(r"\{([^{}]*)\}", lambda m: r.choice(m[1].split("|")), query)


_JOIN = "{JOIN|LEFT JOIN|RIGHT JOIN|FULL JOIN}"
_WAY = "{| DESC| NULLS FIRST}"
_FRAME = "{ROWS|GROUPS|RANGE} BETWEEN {1 PRECEDING|UNBOUNDED PRECEDING|CURRENT ROW} AND {CURRENT ROW|1 FOLLOWING|UNBOUNDED FOLLOWING}"
_CALL = "{sum(b)|count(b)|array_agg(x)|first_value(x)|last_value(x)|nth_value(x, 2)|max(x)}"


def _over(excluded: str) -> str:
    return f"{_CALL} OVER (w {_FRAME} EXCLUDE {excluded})"


EDGES = (
    # joins
    f"SELECT x.b, y.b AS c, y.x FROM e AS x {_JOIN} e AS y ON x.a IS NOT DISTINCT FROM y.a AND x.b < y.b",
    "SELECT x.a, x.b, y.x FROM e AS x JOIN u AS y ON x.b IS NOT DISTINCT FROM y.b",
    f"SELECT x.a, x.b, y.b AS c FROM e AS x {_JOIN} {{e|u}} AS y ON x.a = y.a AND x.b {{<|>|<>}} y.b",
    f"SELECT x.a, x.b, y.x FROM e AS x {_JOIN} e AS y ON x.a = y.a AND 6 / y.b > x.b",
    "SELECT x.a, x.f, y.f AS g, y.b FROM e AS x {JOIN|FULL JOIN} e AS y ON x.f = y.f",
    "SELECT x.a, x.b FROM e AS x {LEFT JOIN|FULL JOIN} u AS y ON x.a = y.a WHERE coalesce(y.b, 1) = 1",
    "SELECT x.a, x.b FROM e AS x LEFT JOIN u AS y ON x.a = y.a WHERE {(y.b = 1) IS NOT TRUE|y.b IS NOT DISTINCT FROM x.b|y.b = 1}",
    "SELECT x.a, x.b, y.x FROM e AS x {LEFT|FULL} JOIN u AS y ON x.a = y.a WHERE {x.b > 0|x.a = x.b|y.x IS NULL|y.b IS NULL|y.a IS NULL}",
    ("SELECT x.b, q.b AS c, q.x FROM u AS x {RIGHT|LEFT|FULL} JOIN (SELECT y.a, z.b, z.x FROM e AS y LEFT JOIN u AS z ON y.b = z.a) AS q"
    " ON x.a = q.b"),
    ("SELECT q.b AS c, q.x, x.b FROM (SELECT y.a, z.b, z.x FROM e AS y LEFT JOIN u AS z ON y.b = z.a) AS q {LEFT|FULL} JOIN u AS x"
    " ON x.a = q.b"),
    "SELECT x.a, x.b FROM {e|u} AS x LEFT JOIN {e|u} AS y ON x.a = y.{a|b}",
    ("SELECT x.a, x.x, y.x AS s FROM {e|u} AS x {LEFT|RIGHT|FULL} JOIN {e|u} AS y ON {x.a = y.a AND |}"
    "{|NOT }EXISTS (SELECT FROM u AS z WHERE z.a = x.b AND z.b {>|<=} y.b)"),
    "SELECT a, b FROM e AS x WHERE {|NOT }EXISTS (SELECT FROM u AS y WHERE y.a = x.a AND y.b {>|<>} x.b)",
    "SELECT x.a, x.b, y.x FROM e AS x JOIN u AS y ON x.a = y.a WHERE 6 / x.b {>|<} 4{| AND y.b = 1}",
    "SELECT x.a, x.b FROM e AS x LEFT JOIN u AS y ON x.a = y.a WHERE concat(y.x, '') = ''",
    # aggregates
    "SELECT a, sum(g) AS s, avg(g) AS m, sum(iv) AS i, avg(b) AS v, count(b) AS c FROM e GROUP BY a",
    "SELECT sum(f) AS s, avg(f) AS v, count(*) AS n, max(f) AS m, min(f) AS l, sum(iv) AS i FROM e{| GROUP BY a| GROUP BY b}",
    "SELECT x, jsonb_object_agg({x|CASE WHEN b > 0 THEN x END}, 1) AS o, count(*) AS n FROM e GROUP BY 1",
    ("SELECT a, percentile_cont({0.25|0.4}) WITHIN GROUP (ORDER BY b) AS c, percentile_disc({0.5|0.9}) WITHIN GROUP (ORDER BY b) AS d,"
    " mode() WITHIN GROUP (ORDER BY x) AS m FROM e GROUP BY a"),
    "SELECT x, bool_and(b > 0) AS y, bool_or(b > 1) AS o, regr_avgx(b, a) AS r, var_pop(n) AS v, bit_and(b) AS t FROM e GROUP BY x",
    "SELECT f, count(*) AS n, sum(b) AS s FROM e GROUP BY f",
    "SELECT DISTINCT f, b FROM e{| WHERE a = 1}",
    "SELECT a, min(b) AS l, max(b) AS m, min(x) AS k, max_by(x, b) AS y, count(DISTINCT b) AS d FROM p GROUP BY a",
    "SELECT max(b) AS m, min(n) AS l, bool_or(b = 2) AS o FROM p{| WHERE a = 1| GROUP BY x}",
    "SELECT y.b, max(x.b) AS m, min(x.x) AS l, count(DISTINCT x.b) AS d FROM p AS x JOIN u AS y ON x.a = y.a GROUP BY y.b",
    "SELECT x.a, min(coalesce(y.b, -1)) AS l, max(coalesce(y.x, 'z')) AS m FROM p AS x {LEFT|FULL} JOIN p AS y ON x.a = y.b GROUP BY x.a",
    # numerics without a declared precision; results as text have a display scale
    "SELECT a, sum(q)::text AS s, avg(q)::text AS m, var_pop(q)::text AS v, stddev_samp(q)::text AS d FROM e GROUP BY a",
    "SELECT sum(q)::text AS s, avg(q{ + n| - b| * n})::text AS m, variance(q) AS v, count(DISTINCT q) AS c FROM e{| WHERE q < 1e30}",
    "SELECT a, min(q) AS l, max(q) AS m, {min|max}(q) FILTER (WHERE q <> 'NaN') AS k, sum(DISTINCT q) AS s FROM e GROUP BY a",
    "SELECT q, count(*) AS c, sum(b) AS s, {max(x)|sum(q)|avg(n)} AS m FROM e GROUP BY q",
    "SELECT DISTINCT q{|, a|, n} FROM e{| WHERE a = 1}",
    f"SELECT x.a, x.q, y.q AS r, y.b FROM e AS x {_JOIN} e AS y ON x.q = y.{{q|n}}{{| AND x.a = y.a}}",
    "SELECT x.a, x.q, y.q AS r FROM e AS x {JOIN|LEFT JOIN|FULL JOIN} e AS y ON x.q IS NOT DISTINCT FROM y.q AND x.a = y.b",
    "SELECT a, q FROM e AS x WHERE {|NOT }EXISTS (SELECT FROM e AS y WHERE y.{q|n} = x.q AND y.a {>|<>} x.a)",
    "SELECT q FROM e WHERE a = 1 {INTERSECT|EXCEPT|UNION|INTERSECT ALL|EXCEPT ALL|UNION ALL} SELECT {q|n|b} FROM e WHERE a <> 1",
    "SELECT a, (q {+|-|*} n)::text AS s, (q {+|-|*} q)::text AS p, (q / n)::text AS d, q {<|=|>=} n AS c FROM e WHERE n <> 0",
    "SELECT a, (n / q)::text AS s, (q % n)::text AS p, (- q)::text AS o, (q / 3)::text AS d FROM e WHERE q <> 0 AND n <> 0",
    f"SELECT a, q, b FROM e ORDER BY q{_WAY}, a, b {{LIMIT 3|LIMIT 2 OFFSET 1|FETCH FIRST 3 ROWS WITH TIES}}",
    "SELECT a, q, {rank|dense_rank}() OVER (PARTITION BY {a|q} ORDER BY {q|q DESC|b}) AS r, sum(q) OVER (PARTITION BY {a|q}) AS s FROM e",
    "SELECT * FROM (SELECT q, a, {rank|dense_rank}() OVER (PARTITION BY a ORDER BY q{| DESC}) AS n FROM e) AS r WHERE n <= 2",
    "SELECT y.b, sum(x.q)::text AS s, avg(x.q) AS m, {min|max}(x.q) AS l FROM e AS x JOIN u AS y ON x.a = y.a GROUP BY y.b",
    "SELECT y.x, x.q, count(*) AS n, sum(x.q) AS s FROM e AS x JOIN u AS y ON x.a = y.a GROUP BY 1, 2",
    # set operations and LIMIT
    "SELECT a FROM e {INTERSECT|INTERSECT ALL} SELECT b FROM {e|p|u}",
    "SELECT b FROM e {EXCEPT|EXCEPT ALL} SELECT a FROM {e|p|u}",
    "SELECT iv, a FROM e {INTERSECT ALL|EXCEPT ALL} SELECT iv, a FROM e WHERE {b = 1|g > 0|x = 'x'}",
    f"SELECT a, x, b FROM e ORDER BY {{a|b|x}}{_WAY} {{|OFFSET 1 }}FETCH FIRST {{1|2|3|5}} ROWS WITH TIES",
    f"SELECT a, x, b FROM e ORDER BY {{a|b}}{_WAY}, x FETCH FIRST {{2|4}} ROWS WITH TIES",
    f"SELECT a, x FROM p ORDER BY {{a|x}}{_WAY} {{LIMIT 1|LIMIT 3|LIMIT 3 OFFSET 1|OFFSET 2|FETCH FIRST 2 ROWS WITH TIES}}",
    "SELECT f, b FROM e ORDER BY f{| DESC}, b LIMIT {2|4}",  # 0.0 and -0.0 are equal, so b decides
    "SELECT a, b FROM {e|u} ORDER BY {a|b} {OFFSET 2|OFFSET 4|LIMIT 2 OFFSET 3}",
    "SELECT * FROM (SELECT a, b, {rank|dense_rank|row_number}() OVER (PARTITION BY a ORDER BY b) AS n FROM {e|p}) AS q WHERE n {<= 2|= 1}",
    # window functions; the calls share an order, because each breaks ties differently
    *(f"SELECT a, b, {_over(x)} AS o, {_over(y)} AS p, {_over(z)} AS q FROM e WINDOW w AS (PARTITION BY {{a|x}} ORDER BY b{_WAY})"
      for x, y, z in (("TIES", "GROUP", "CURRENT ROW"), ("NO OTHERS", "NO OTHERS", "CURRENT ROW"), ("TIES", "TIES", "GROUP"))),
    ("SELECT a, b, sum(a) OVER (w RANGE BETWEEN {1|2} PRECEDING AND {CURRENT ROW|1 FOLLOWING}) AS s, count(*) OVER (w RANGE BETWEEN {0|1}"
    " PRECEDING AND {0|1} FOLLOWING) AS n, last_value(x) OVER w AS l FROM e WINDOW w AS ({|PARTITION BY x }ORDER BY b{| DESC})"),
    ("SELECT a, b, percent_rank() OVER w AS p, lag(x, {1|2}, {'none'|x}) OVER w AS l, lead(b, {1|2}, 9) OVER w AS d, cume_dist() OVER w"
    " AS c FROM e WINDOW w AS ({|PARTITION BY a }ORDER BY b{| DESC})"),
    ("SELECT a, b, rank() OVER w AS r, dense_rank() OVER w AS d, row_number() OVER w AS n, ntile({2|3}) OVER w AS t FROM e"
    " WINDOW w AS ({|PARTITION BY a }ORDER BY b{| DESC})"),
    "SELECT a, b, {ntile(b)|nth_value(x, b)} OVER (PARTITION BY a ORDER BY b, x, n, g) AS t FROM e",
    # time
    "SELECT a, b FROM {e|p} WHERE localtimestamp {>=|>} at AND localtimestamp {>=|>} until",
    "SELECT a, b FROM {e|p} WHERE localtimestamp {<=|<} at AND localtimestamp {<=|<} until",
    "SELECT a, b FROM {e|p} WHERE localtimestamp {>=|>} at AND localtimestamp {<=|<} until",
    "SELECT a, b FROM {e|p} WHERE localtimestamp {>=|<} at AND b {<|>} 1",
    "SELECT a, max(b) AS m, min(x) AS l, count(*) AS n FROM p WHERE localtimestamp {<=|<} at GROUP BY a",
    "SELECT a, x FROM p WHERE localtimestamp {<=|<} at ORDER BY a, x LIMIT 2",
    # rewrites
    "SELECT * FROM (SELECT a, count(*) AS n, max(b) AS m FROM e GROUP BY a) AS q WHERE q.a {>|<} 1{| AND q.n > 1}",
    "SELECT a, b, x FROM e WHERE (a = 1 AND {b = 1|x = 'x'}) OR (a = {1|2} AND b = 2){| OR (a = 1 AND x = '')}",
    "SELECT * FROM (SELECT a, b, x FROM e WHERE a > 0) AS q WHERE q.b {<|>} 1",
    "SELECT * FROM (SELECT a, b FROM e {UNION|UNION ALL|INTERSECT|EXCEPT ALL} SELECT a, b FROM u) AS q WHERE q.a {>|<} 1",
    "SELECT y.b, {count|sum}(DISTINCT x.b) AS d, count(*) AS n FROM e AS x JOIN u AS y ON x.a = y.a GROUP BY y.b",
    "SELECT y.b, {count|sum}(x.b) FILTER (WHERE x.b {=|<} 1) AS d, sum(x.g) AS s FROM e AS x JOIN u AS y ON x.a = y.a GROUP BY y.b",
    "SELECT y.x, {x.b|x.x} AS z, count(*) AS n, sum(x.g) AS s FROM e AS x JOIN u AS y ON x.a = y.a GROUP BY 1, 2",
)  # fmt: skip
