"""docs/sql/functions.md, made from the catalogue: `python -m tests.sql.function_docs DSN` writes it; a PostgreSQL answers the examples.

What a function does is written by hand into the file, and stays; so does an example that is there. New examples are taken from the
corpus of expressions, or made of sample values.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from lake.errors import TailgateError
from lake.types import FACTS
from sql.duckdb_functions import install
from sql.functions import (
    aggregates,
    arithmetic,
    arrays,
    byte_strings,
    comparison,
    datetime,
    jsonb,
    mathematics,
    regexps,
    set_returning,
    text,
    windows,
)
from sql.functions.entry import Function
from tests.sql.corpus import Expression, corpus, on_duckdb
from tests.sql.oracle import case_of

FILE = Path(__file__).parents[2] / "docs" / "sql" / "functions.md"
FORMATTING = ("to_char", "to_number", "to_date")
FAMILIES: dict[str, tuple[Function, ...]] = {
    "Comparison": comparison.ROWS,
    "Arithmetic": arithmetic.ROWS,
    "Mathematics": mathematics.ROWS,
    "Text": text.ROWS,
    "Regular expressions": regexps.ROWS,
    "Bytes": byte_strings.ROWS,
    "Dates and times": tuple(r for r in datetime.ROWS if r.name not in FORMATTING),
    "Formatting": tuple(r for r in datetime.ROWS if r.name in FORMATTING),
    "jsonb": jsonb.ROWS,
    "Arrays": arrays.ROWS,
    "Aggregates": aggregates.ROWS,
    "Window functions": windows.ROWS,
    "Set-returning functions": set_returning.ROWS,
}
WINDOW = "(SELECT array_agg({} ORDER BY x, v) FROM (SELECT x, {} OVER ({}) AS v FROM (VALUES (1), (3), (3), (8)) t(x)) w)"
PAIRS = "FROM (VALUES (1::float8, 2::float8), (2, 4), (3, 5)) t(y, x))"
WRITTEN = {  # for those that no expression of the corpus calls
    "transaction_timestamp": "transaction_timestamp() = now()",
    "statement_timestamp": "statement_timestamp() >= now()",
    "clock_timestamp": "clock_timestamp() >= now()",
    "current_timestamp": "current_timestamp = now()",
    "localtimestamp": "localtimestamp = now()::timestamp",
    "current_date": "current_date = now()::date",
    **{name: f"(SELECT {name}(x) FROM (VALUES (5), (3)) t(x))" for name in ("bit_or", "bit_xor", "var_samp", "stddev_samp")},
    **{f"regr_{name}": f"(SELECT regr_{name}(y, x) {PAIRS}" for name in ("avgx", "avgy", "sxx", "sxy", "syy")},
    **{
        name: WINDOW.format("v", f"{name}({arguments})", order)
        for name, arguments, order in (
            ("row_number", "", "ORDER BY x"),
            ("rank", "", "ORDER BY x"),
            ("dense_rank", "", "ORDER BY x"),
            ("percent_rank", "", "ORDER BY x"),
            ("cume_dist", "", "ORDER BY x"),
            ("ntile", "2", "ORDER BY x"),
            ("lag", "x, 1, 0", "ORDER BY x"),
            ("lead", "x, 2", "ORDER BY x"),
            ("first_value", "x", "ORDER BY x ROWS 1 PRECEDING"),
            ("last_value", "x", "ORDER BY x GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING"),
            ("nth_value", "x, 2", "ORDER BY x"),
        )
    },
    "regr_intercept": "(SELECT regr_intercept(y, x) FROM (VALUES (1::float8, 2::float8), (2, 4), (3, 6)) t(y, x))",
    "jsonb_array_elements": "(SELECT sum(value::int) FROM jsonb_array_elements('[3, 1]'::jsonb))",
    "jsonb_array_elements_text": """(SELECT string_agg(value, ',' ORDER BY value) FROM jsonb_array_elements_text('["b", "a"]'::jsonb))""",
}
OURS = (
    "mz_now",
    "mz_logical_timestamp",
    "min_by",
    "max_by",
    "earliest_by_offset",
    "latest_by_offset",
    "json_agg",
    "json_object_agg",
)  # PostgreSQL has them not, or of type json
SHORT = {"timestamp": "timestamp", "timestamptz": "timestamptz", "time": "time"}
INTERNAL = ("[]", "[:]", "ARRAY", "like_escape")  # what has a syntax of its own
HEAD = """# Functions and operators

Made from the function catalogue (`sql/functions`), which a test compares with this page and every example with PostgreSQL 15. All of them
work in views and in ad-hoc queries alike, but for those marked *ad hoc*. What PostgreSQL has and is not here is refused by name (0A000);
where an answer differs, [differences](differences.md) says so. T stands for each of the types named behind. A function of NULL is NULL
unless it says otherwise. What has a syntax of its own (CASE, COALESCE, IN, LIKE, casts and others) is on the page of
[expressions](expressions.md), functions of your own are [CREATE FUNCTION](statements.md)'s.
"""
LINE = re.compile(r"^\| (?P<name>\S+)(?P<adhoc> \*ad hoc\*)? \| (?P<signatures>.*?) \| (?P<does>.*?) \| (?P<example>.*?) \|$")
EXAMPLE = re.compile(r"`` (?P<sql>.*) `` → (?:`` (?P<value>.*) ``|NULL)$")


def shown(name: str) -> str:
    """A type as people write it."""
    base = name.removesuffix("[]")
    return SHORT.get(base, FACTS[base].sql if base in FACTS else base) + ("[]" if name.endswith("[]") else "")


def signature(row: Function) -> tuple[tuple[str, ...], str]:
    """Types of the arguments, and of the result where it is always the same."""
    types = [shown(a) for a in row.arguments]
    if row.variadic:
        types.append("…")
    result = (
        shown(row.result)
        if isinstance(row.result, str)
        else "numeric"
        if "numeric" in row.arguments or row.kind not in ("aggregate", "window")
        else ""
    )
    return tuple(types), result


def entries() -> dict[str, dict[str, tuple[bool, list[str]]]]:
    """Of each family: name to whether it is for ad-hoc queries only, and its signatures."""
    found: dict[str, dict[str, tuple[bool, list[str]]]] = {}
    for family, rows in FAMILIES.items():
        named: dict[str, list[Function]] = defaultdict(list)
        for row in rows:
            if row.duckdb and row.name not in INTERNAL:
                named[row.name.partition(":")[0]].append(row)
        found[family] = {
            n: (
                not any(r.spark for r in rs) and rs[0].kind not in ("aggregate", "window", "set"),
                merged(list(dict.fromkeys(map(signature, rs)))),
            )
            for n, rs in named.items()
        }
    return found


def lines() -> dict[tuple[str, str], re.Match[str]]:
    """Family and name → the line of the table."""
    found: dict[tuple[str, str], re.Match[str]] = {}
    family = ""
    for line in FILE.read_text().splitlines():
        family = line.removeprefix("## ") if line.startswith("## ") else family
        if (match := LINE.match(line)) and match["name"].startswith("`"):
            found[family, match["name"].strip("`").replace("\\|", "|")] = match
    return found


def merged(signatures: list[tuple[tuple[str, ...], str]]) -> list[str]:
    """Signatures as people write them: those that differ in one type only are one, of T."""
    out: list[str] = []
    alike = [(a, result) for a, result in signatures if len(set(a)) == 1 and "…" not in a]
    fixed = {result for _, result in alike} if len({result for _, result in alike}) == 1 else set()  # as of comparisons

    def kind(arguments: tuple[str, ...], result: str) -> tuple[int, str]:
        return len(arguments), "T" if result == arguments[0] and result not in fixed else result

    same: dict[tuple[int, str], list[str]] = defaultdict(list)
    for arguments, result in alike:
        same[kind(arguments, result)].append(arguments[0])
    for arguments, result in signatures:
        key = kind(arguments, result) if (arguments, result) in alike else None
        if key is None or len(same[key]) < 3:
            out.append(_signature(arguments, result))
        elif (text := f"{_signature(('T',) * key[0], key[1])} of {', '.join(same[key])}") not in out:
            out.append(text)
    return out


def _signature(arguments: tuple[str, ...], result: str) -> str:
    return f"({', '.join(arguments)})" + (f" → {result}" if result else "")


def examples_of(name: str, kind: str) -> list[str]:
    """Expressions of the corpus in which it is called, the shortest first."""
    escaped = re.escape(name)
    pattern = rf"(?<![\w.]){escaped}\s*\(" if kind not in ("operator", "prefix") else rf"[\w')\]\s]{escaped}(?=[\s\d'({{]|\w)"
    if kind == "prefix":
        pattern = rf"^{escaped}\s*[\w(']"
    return sorted((e.sql for e in corpus() if not e.sqlstate and re.search(pattern, e.sql)), key=len)


def made(row: Function) -> list[str]:
    """The row's call with sample values."""
    if row.kind in ("aggregate", "window", "set"):
        return []
    case = case_of(row, 1)
    found = []
    for values in case.rows if "a" in case.expression else ((),):
        if None in values or not case.expression:
            continue
        text = case.expression

        def literal(match: re.Match[str], values: tuple[str | None, ...] = values) -> str:
            index = "abcdefg".index(match[0])
            return "'" + str(values[index]).replace("'", "''") + f"'::{case.types[index]}"

        found.append(re.sub(r"(?<![\w'])[a-g](?![\w'(])", literal, text))
    return sorted(found, key=len)[:20]


def asked(server: psycopg.Connection[Any], sql: str) -> tuple[str | None, str] | None:
    try:
        row = server.execute(f"SELECT x::text, pg_typeof(x)::text FROM (SELECT {sql} AS x) q".replace("%", "%%"), ()).fetchone()
    except psycopg.Error:
        return None
    return None if row is None else (row[0], row[1])


def same(engine: duckdb.DuckDBPyConnection, sql: str, answer: tuple[str | None, str]) -> bool:
    try:
        return on_duckdb(engine, Expression("", sql, answer[0], answer[1], "")) == "same"
    except TailgateError:
        return False


def written(server: psycopg.Connection[Any]) -> str:
    engine = duckdb.connect()
    install(engine)
    kept = lines()
    out = [HEAD]
    for family, named in entries().items():
        out += [f"\n## {family}\n", "| name | arguments and result | what it does | example |", "|---|---|---|---|"]
        for name, (adhoc, signatures) in named.items():
            rows = [r for r in FAMILIES[family] if r.name.partition(":")[0] == name and r.duckdb]
            there = kept.get((family, name))
            example, does = (there["example"], there["does"]) if there else ("", "")
            if not example:
                for sql in [
                    *([WRITTEN[name]] if name in WRITTEN else []),
                    *examples_of(name, rows[0].kind),
                    *(m for r in rows[:3] if r.volatility == "immutable" for m in made(r)),
                ]:
                    answer = asked(server, sql)
                    if answer is not None and "\n" not in (answer[0] or "") + sql and "``" not in sql and same(engine, sql, answer):
                        value = "NULL" if answer[0] is None else f"`` {answer[0]} ``"
                        example = f"`` {sql} `` → {value}".replace("|", "\\|")
                        break
            cell = "`" + name.replace("|", "\\|") + "`" + (" *ad hoc*" if adhoc else "")
            out.append(f"| {cell} | {'; '.join(signatures)} | {does} | {example} |")
    return "\n".join(out) + "\n"


def main() -> None:
    with psycopg.connect(sys.argv[1], autocommit=True) as server:
        server.execute("SET TimeZone = 'UTC'")
        FILE.write_text(written(server))


if __name__ == "__main__":
    main()
