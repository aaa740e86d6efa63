"""Comparison operators.

They are the SQL of `order_key` of `tailgate.values`. Most types compare in their stored form. An
interval compares as microseconds, with 30 days in a month and 24 hours in a day; char(n) compares
without trailing blanks. Text compares by code points (the C collation). NaN equals itself and is
above all other numbers.
"""

from __future__ import annotations

from tailgate.sql.functions.entry import Function

SIGNS = ("=", "<>", "<", "<=", ">", ">=")
INCOMPARABLE = frozenset({"json", "jsonpath"})  # types without comparison operators
TYPES = """
    bool char int2 int4 int8 float4 float8 numeric text bytea date time timetz timestamp timestamptz uuid oid name inet macaddr macaddr8
    bit varbit money int4range int8range daterange tsrange tstzrange int4multirange int8multirange datemultirange tsmultirange
    tstzmultirange
""".split()
INTERVAL_SPARK = "(CAST({%d}.months AS DECIMAL(38,0)) * 2592000000000 + CAST({%d}.days AS DECIMAL(20,0)) * 86400000000 + {%d}.micros)"
INTERVAL_DUCKDB = "(CAST({%d}.months AS HUGEINT) * 2592000000000 + CAST({%d}.days AS HUGEINT) * 86400000000 + {%d}.micros)"


# a numrange without the display scales of its bounds, which are the last 4 bytes
NUMRANGE_SPARK, NUMRANGE_DUCKDB = "substring({%d}, 1, length({%d}) - 4)", "({%d})[:-5]"
NUMMULTIRANGE = "tg_multirange_key({%d})"  # without these, in both engines


def nested_duckdb(sign: str, left: str, right: str) -> str:
    """Returns DuckDB's comparison of lists or structs.

    DuckDB makes BETWEEN of two bounds of a value in WHERE, and refuses it for these types. The casts prevent this.
    """
    compared = f"({left} {sign} {right})"
    return f"CAST(CAST({compared} AS UTINYINT) AS BOOLEAN)" if sign not in ("=", "<>") else compared


def _row(sign: str, left: str, right: str, spark: str = "{%d}", duckdb: str = "{%d}") -> Function:
    def side(template: str, n: int) -> str:
        return template.replace("{%d}", "{" + str(n) + "}")

    return Function(
        sign, (left, right), "bool",
        f"({side(spark, 0)} {sign} {side(spark, 1)})",
        f"({side(duckdb, 0)} {sign} {side(duckdb, 1)})",
        "operator",
    )  # fmt: skip


def _with_date(sign: str, type: str, *, date_first: bool = True) -> Function:
    sides = ("date", type) if date_first else (type, "date")
    spark = (f"tg_date_beside_{type}({{{n}}})" if side == "date" else f"{{{n}}}" for n, side in enumerate(sides))
    duckdb = (f"tg_date_beside_{type}({{{n}}})" if side == "date" else f"{{{n}}}" for n, side in enumerate(sides))
    return Function(sign, sides, "bool", f"({f' {sign} '.join(spark)})", f"({f' {sign} '.join(duckdb)})", "operator")


LAST = "294247-01-10 04:00:54.775806"  # the last timestamp
# a date as a timestamp that it is compared with: later dates are the last timestamp
MACROS = (
    f"tg_date_beside_timestamp(d) AS coalesce(TRY_CAST(d AS TIMESTAMP), CASE WHEN d IS NOT NULL THEN TIMESTAMP '{LAST}' END)",
    "tg_date_beside_timestamptz(d) AS CAST(tg_date_beside_timestamp(d) AS TIMESTAMPTZ)",
)


def _rows() -> list[Function]:
    rows = [_row(sign, t, t) for sign in SIGNS for t in TYPES]
    for sign in SIGNS:
        rows += [
            _row(sign, "float4", "float8", "CAST({%d} AS DOUBLE)", "CAST({%d} AS DOUBLE)"),
            _row(sign, "float8", "float4", "CAST({%d} AS DOUBLE)", "CAST({%d} AS DOUBLE)"),
            *(_with_date(sign, t) for t in ("timestamp", "timestamptz")),
            *(_with_date(sign, t, date_first=False) for t in ("timestamp", "timestamptz")),
            _row(sign, "timestamp", "timestamptz", "CAST({%d} AS TIMESTAMP)", "CAST({%d} AS TIMESTAMPTZ)"),
            _row(sign, "timestamptz", "timestamp", "CAST({%d} AS TIMESTAMP)", "CAST({%d} AS TIMESTAMPTZ)"),
            _row(sign, "bpchar", "bpchar", "rtrim({%d})", "rtrim({%d}, ' ')"),
            _row(sign, "interval", "interval", INTERVAL_SPARK, INTERVAL_DUCKDB),
            _row(sign, "numrange", "numrange", NUMRANGE_SPARK, NUMRANGE_DUCKDB),
            _row(sign, "nummultirange", "nummultirange", NUMMULTIRANGE, NUMMULTIRANGE),
            _row(sign, "anyenum", "anyenum"),
        ]
    return rows


ROWS = tuple(_rows())
