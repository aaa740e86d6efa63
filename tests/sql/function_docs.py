"""Writes docs/sql/functions.md from the catalogue: `python -m tests.sql.function_docs DSN`.

Descriptions are written by hand into the page. They and existing examples stay as they are. A new
example comes from the corpus of expressions, or has sample values. PostgreSQL computes its result.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from tailgate.lake.errors import TailgateError
from tailgate.lake.types import FACTS
from tailgate.sql.functions import (
    aggregates,
    arithmetic,
    arrays,
    byte_strings,
    comparison,
    datetime,
    json,
    mathematics,
    networks,
    ranges,
    regexps,
    set_returning,
    text,
    windows,
)
from tailgate.sql.functions.entry import Function
from tailgate.sql.render.duckdb_functions import install
from tests.sql.corpus import Expression, corpus, on_duckdb
from tests.sql.oracle import case_of, pgcrypto

FILE = Path(__file__).parents[2] / "docs" / "sql" / "functions.md"
FORMATTING = ("to_char", "to_number", "to_date")
FAMILIES: dict[str, tuple[Function, ...]] = {
    "Comparison": comparison.ROWS,
    "Arithmetic": arithmetic.ROWS,
    "Mathematics": mathematics.ROWS,
    "Text": text.ROWS,
    "Regular expressions": regexps.ROWS,
    "Bytes": byte_strings.ROWS,
    "Bit strings": byte_strings.BIT_ROWS,
    "Dates and times": tuple(r for r in datetime.ROWS if r.name not in FORMATTING),
    "Formatting": tuple(r for r in datetime.ROWS if r.name in FORMATTING),
    "Network addresses": networks.ROWS,
    "Ranges": ranges.ROWS,
    "JSON": json.ROWS,
    "Arrays": arrays.ROWS,
    "Aggregates": aggregates.ROWS,
    "Window functions": windows.ROWS,
    "Set-returning functions": set_returning.ROWS,
}
WINDOW = "(SELECT array_agg({} ORDER BY x, v) FROM (SELECT x, {} OVER ({}) AS v FROM (VALUES (1), (3), (3), (8)) t(x)) w)"
PAIRS = "FROM (VALUES (1::float8, 2::float8), (2, 4), (3, 5)) t(y, x))"
EXAMPLES = {  # for functions that the corpus does not call
    "pg_typeof": "pg_typeof(1.5)::text",
    "pg_sleep": "pg_sleep(0.01)::text",
    "pg_sleep_for": "pg_sleep_for('10 milliseconds')::text",
    "pg_sleep_until": "pg_sleep_until(now())::text",
    "digest": "digest('abc', 'sha1')",
    "hmac": "hmac('abc', 'key', 'sha256')",
    "parse_ident": """parse_ident('Shop."Orders"')""",
    "random": "random() < 1",
    "gen_random_uuid": "length(gen_random_uuid()::text)",
    "uuid_generate_v4": "length(uuid_generate_v4()::text)",
    "jsonb_set_lax": """jsonb_set_lax('{"a": 1, "b": 2}', '{a}', NULL, true, 'delete_key')""",
    "<<": "inet '10.1.2.3' << '10.0.0.0/8'",
    "<<=": "inet '10.0.0.0/8' <<= '10.0.0.0/8'",
    ">>": "inet '10.0.0.0/8' >> '10.1.2.3'",
    ">>=": "cidr '10.0.0.0/8' >>= cidr '10.1.0.0/16'",
    "&&": "inet '10.0.0.0/8' && '10.1.2.3/16'",
    "~": "~ inet '10.0.0.1'",
    "&": "inet '10.1.2.3' & '0.0.255.255'",
    "|": "inet '10.0.0.3' | '0.0.0.255'",
    "+": "inet '10.0.0.1' + 5",
    "-": "inet '10.0.0.9' - inet '10.0.0.1'",
    "abbrev": "abbrev(cidr '10.1.0.0/16')",
    "broadcast": "broadcast(inet '192.168.1.5/24')",
    "family": "family(inet '::1')",
    "host": "host(inet '192.168.1.5/24')",
    "hostmask": "hostmask(inet '192.168.1.5/24')",
    "inet_merge": "inet_merge('192.168.1.5/24', '192.168.2.5/24')",
    "inet_same_family": "inet_same_family('10.0.0.1', '::1')",
    "masklen": "masklen(inet '192.168.1.5/24')",
    "netmask": "netmask(inet '192.168.1.5/24')",
    "network": "network(inet '192.168.1.5/24')",
    "set_masklen": "set_masklen(inet '192.168.1.5/24', 16)",
    "macaddr8_set7bit": "macaddr8_set7bit('00:34:56:ab:cd:ef')",
    "transaction_timestamp": "transaction_timestamp() = now()",
    "statement_timestamp": "statement_timestamp() >= now()",
    "clock_timestamp": "clock_timestamp() >= now()",
    "current_timestamp": "current_timestamp = now()",
    "localtimestamp": "localtimestamp = now()::timestamp",
    "current_date": "current_date = now()::date",
    "current_time": "current_time = now()::timetz",
    "localtime": "localtime = now()::time",
    "@?": """'{"a": [1, 5]}'::jsonb @? '$.a[*] ? (@ > 3)'""",
    "@@": """'{"a": [1, 5]}'::jsonb @@ '$.a[0] == 1'""",
    "jsonb_path_exists": """jsonb_path_exists('{"a": 5}', '$.a ? (@ > $min)', '{"min": 3}')""",
    "jsonb_path_match": """jsonb_path_match('{"a": 5}', '$.a > 3')""",
    "jsonb_path_query": """(SELECT sum(q::int) FROM jsonb_path_query('{"a": [1, 5]}', '$.a[*]') AS q)""",
    "jsonb_path_query_array": """jsonb_path_query_array('{"a": [1, 5, 7]}', '$.a[*] ? (@ > 3)')""",
    "jsonb_path_exists_tz": """jsonb_path_exists_tz('"10:00:00+01"', '$.datetime() < "10:00:00".datetime()')""",
    "jsonb_path_match_tz": """jsonb_path_match_tz('"2024-01-01"', '$.datetime() > "2023-12-31 12:00:00+00".datetime()')""",
    "jsonb_path_query_tz": """(SELECT count(*) FROM jsonb_path_query_tz('["2024-01-01"]', '$[*].datetime()'))""",
    "jsonb_path_query_array_tz": """jsonb_path_query_array_tz('["2024-01-01 10:00:00+01"]', '$[*].datetime()')""",
    "jsonb_path_query_first_tz": """jsonb_path_query_first_tz('["10:00:00"]', '$[*].datetime().type()')""",
    "convert": r"""convert('\xe4', 'latin1', 'utf8')""",
    "jsonb_path_query_first": """jsonb_path_query_first('{"a": [1, 5]}', 'strict $.a[last]')""",
    "int8multirange": "int8multirange(int8range(1, 5), int8range(7, 9))",
    "nummultirange": "nummultirange(numrange(1, 2.50))",
    "datemultirange": "datemultirange(daterange('2024-02-01', '2024-02-03'), '[2024-02-03,2024-02-05]')",
    "tsmultirange": "tsmultirange(tsrange('2024-02-01', NULL))",
    "tstzmultirange": "tstzmultirange(tstzrange(NULL, '2024-02-01'))",
    "range_agg": "(SELECT range_agg(int4range(x, x + 3)) FROM (VALUES (1), (2), (9)) t(x))",
    "range_intersect_agg": "(SELECT range_intersect_agg(int4range(x, x + 3)) FROM (VALUES (1), (2)) t(x))",
    "cash_words": "cash_words('12.34')",
    "cashlarger": "cashlarger('1', '2.50')",
    "cashsmaller": "cashsmaller('1', '2.50')",
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
EXAMPLES |= {
    "try": "(SELECT sum(try(x::int)) FROM (VALUES ('5'), ('a')) t(x))",
    "json_typeof": "json_typeof('[1]')",
    "json_array_length": "json_array_length('[1, [2, 3]]')",
    "json_extract_path": """json_extract_path('{"a": {"b":  5}}', 'a')""",
    "json_strip_nulls": """json_strip_nulls('{"a": 1, "b": null}')""",
    "json_object": "json_object('{a,1,b,2}')",
    "to_json": "to_json('12:30'::time)",
    "array_to_json": "array_to_json(ARRAY[1, 2])",
    "json_build_array": "json_build_array(1, 'a', NULL)",
    "json_build_object": "json_build_object('a', 1, 'b', 'x')",
    "json_array_elements": "(SELECT max(value::text) FROM json_array_elements('[3, 1]'))",
    "json_array_elements_text": """(SELECT string_agg(value, ',' ORDER BY value) FROM json_array_elements_text('["b", "a"]'))""",
    "json_object_keys": """(SELECT array_agg(k ORDER BY k) FROM json_object_keys('{"b":1,"a":2}') AS k)""",
    "json_each": """(SELECT string_agg(key || '=' || value::text, ',' ORDER BY key) FROM json_each('{"a":1,"b":"x"}'))""",
    "json_each_text": """(SELECT string_agg(key || '=' || value, ',' ORDER BY key) FROM json_each_text('{"a":1,"b":"x"}'))""",
}
EXTENSIONS = (
    "mz_now",
    "mz_logical_timestamp",
    "try",
    "any_value",
    "min_by",
    "max_by",
    "earliest_by_offset",
    "latest_by_offset",
)  # PostgreSQL lacks them
SHORT_NAMES = {"timestamp": "timestamp", "timestamptz": "timestamptz", "time": "time"}
INTERNAL = ("[]", "[:]", "ARRAY", "like_escape")  # entries that are called by other syntax
HEAD = """# Functions and operators

This page is generated from the function catalogue (`tailgate/sql/functions`). Tests compare it with the catalogue
and the examples with PostgreSQL 15.

- Functions work in views and in ad-hoc queries. Those marked *ad hoc* only work in ad-hoc queries.
- Other functions of PostgreSQL raise 0A000. [Differences](differences.md) lists different results.
- T stands for each of the types that follow the signature.
- The result for a NULL argument is NULL unless the description says otherwise.
- Arguments have names where PostgreSQL names them, as in `make_interval(days => 10)`. The last argument of `concat`,
  `concat_ws`, `format`, `num_nulls`, `num_nonnulls`, `json_build_array`, `json_build_object`, `json_extract_path`,
  `json_extract_path_text` and of those of jsonb can be an array: `format('%s: %s', VARIADIC words)`.
- [Expressions](expressions.md) describes CASE, COALESCE, IN, LIKE, casts and other syntax,
  and [CREATE FUNCTION](statements.md) user-defined functions.
"""
LINE = re.compile(r"^\| (?P<name>\S+)(?P<adhoc> \*ad hoc\*)? \| (?P<signatures>.*?) \| (?P<does>.*?) \| (?P<example>.*?) \|$")
EXAMPLE = re.compile(r"`` (?P<sql>.*) `` → (?:`` (?P<value>.*) ``|NULL)$")


def type_name(name: str) -> str:
    """Returns the name of a type for the page."""
    base = name.removesuffix("[]")
    return SHORT_NAMES.get(base, FACTS[base].sql if base in FACTS else base) + ("[]" if name.endswith("[]") else "")


def signature(row: Function) -> tuple[tuple[str, ...], str]:
    """Returns the types of the arguments, and of the result if it is always the same."""
    types = [type_name(a) for a in row.arguments]
    if row.variadic:
        types.append("…")
    result = (
        type_name(row.result)
        if isinstance(row.result, str)
        else "numeric"
        if "numeric" in row.arguments or row.kind not in ("aggregate", "window")
        else ""
    )
    return tuple(types), result


def entries() -> dict[str, dict[str, tuple[bool, list[str]]]]:
    """Returns whether each function is for ad-hoc queries only, and its signatures, by family."""
    families: dict[str, dict[str, tuple[bool, list[str]]]] = {}
    for family, rows in FAMILIES.items():
        rows_by_name: dict[str, list[Function]] = defaultdict(list)
        for row in rows:
            if row.duckdb and row.name not in INTERNAL:
                rows_by_name[row.name.partition(":")[0]].append(row)
        families[family] = {
            n: (
                not any(r.spark for r in rs) and rs[0].kind not in ("aggregate", "window", "set"),
                merged(list(dict.fromkeys(map(signature, rs)))),
            )
            for n, rs in rows_by_name.items()
        }
    return families


def lines() -> dict[tuple[str, str], re.Match[str]]:
    """Returns the lines of the page's tables by family and name."""
    matches: dict[tuple[str, str], re.Match[str]] = {}
    family = ""
    for line in FILE.read_text().splitlines():
        family = line.removeprefix("## ") if line.startswith("## ") else family
        if (match := LINE.match(line)) and match["name"].startswith("`"):
            matches[family, match["name"].strip("`").replace("\\|", "|")] = match
    return matches


def merged(signatures: list[tuple[tuple[str, ...], str]]) -> list[str]:
    """Returns signatures for the page. One of T replaces those that differ in one type only."""
    out: list[str] = []
    of_one_type = [(a, result) for a, result in signatures if len(set(a)) == 1 and "…" not in a]
    results = {result for _, result in of_one_type}
    fixed_results = results if len(results) == 1 else set()  # for example bool, of comparisons

    def kind(arguments: tuple[str, ...], result: str) -> tuple[int, str]:
        return len(arguments), "T" if result == arguments[0] and result not in fixed_results else result

    types_by_kind: dict[tuple[int, str], list[str]] = defaultdict(list)
    for arguments, result in of_one_type:
        types_by_kind[kind(arguments, result)].append(arguments[0])
    for arguments, result in signatures:
        key = kind(arguments, result) if (arguments, result) in of_one_type else None
        if key is None or len(types_by_kind[key]) < 3:
            out.append(_signature(arguments, result))
        elif (text := f"{_signature(('T',) * key[0], key[1])} of {', '.join(types_by_kind[key])}") not in out:
            out.append(text)
    return out


def _signature(arguments: tuple[str, ...], result: str) -> str:
    return f"({', '.join(arguments)})" + (f" → {result}" if result else "")


def examples_of(name: str, kind: str) -> list[str]:
    """Returns expressions of the corpus that call a function, the shortest first."""
    escaped = re.escape(name)
    pattern = rf"(?<![\w.]){escaped}\s*\(" if kind not in ("operator", "prefix") else rf"[\w')\]\s]{escaped}(?=[\s\d'({{]|\w)"
    if kind == "prefix":
        pattern = rf"^{escaped}\s*[\w(']"
    return sorted((e.sql for e in corpus() if not e.sqlstate and re.search(pattern, e.sql)), key=len)


def sample_calls(row: Function) -> list[str]:
    """Returns calls of a function with sample values."""
    if row.kind in ("aggregate", "window", "set"):
        return []
    case = case_of(row, 1)
    calls = []
    for values in case.rows if "a" in case.expression else ((),):
        if None in values or not case.expression:
            continue
        text = case.expression

        def literal(match: re.Match[str], values: tuple[str | None, ...] = values) -> str:
            index = "abcdefg".index(match[0])
            return "'" + str(values[index]).replace("'", "''") + f"'::{case.types[index]}"

        calls.append(re.sub(r"(?<![\w'])[a-g](?![\w'(])", literal, text))
    return sorted(calls, key=len)[:20]


def answer_of(server: psycopg.Connection[Any], sql: str) -> tuple[str | None, str] | None:
    """Returns an expression's value and type, or None if PostgreSQL raises an error."""
    query = f"SELECT x::text, pg_typeof(x)::text FROM (SELECT {sql} AS x) q"
    try:
        row = server.execute(query.replace("%", "%%"), ()).fetchone()  # type: ignore[arg-type]
    except psycopg.Error:
        return None
    return None if row is None else (row[0], row[1])


def has_result_on_duckdb(engine: duckdb.DuckDBPyConnection, sql: str, answer: tuple[str | None, str]) -> bool:
    try:
        return on_duckdb(engine, Expression("", sql, answer[0], answer[1], "")) == "same"
    except TailgateError:
        return False


def page(server: psycopg.Connection[Any]) -> str:
    """Returns the text of the page."""
    engine = duckdb.connect()
    install(engine)
    existing_lines = lines()
    out = [HEAD]
    for family, functions in entries().items():
        out += [f"\n## {family}\n", "| name | arguments and result | what it does | example |", "|---|---|---|---|"]
        for name, (adhoc, signatures) in functions.items():
            rows = [r for r in FAMILIES[family] if r.name.partition(":")[0] == name and r.duckdb]
            line = existing_lines.get((family, name))
            description = line["does"] if line else ""
            example = (line["example"] if line else "") or new_example(name, rows, server, engine)
            cell = "`" + name.replace("|", "\\|") + "`" + (" *ad hoc*" if adhoc else "")
            out.append(f"| {cell} | {'; '.join(signatures)} | {description} | {example} |")
    return "\n".join(out) + "\n"


def new_example(name: str, rows: list[Function], server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection) -> str:
    """Returns the first call with the same result on PostgreSQL and DuckDB, or an empty text."""
    for sql in [
        *([EXAMPLES[name]] if name in EXAMPLES else []),
        *examples_of(name, rows[0].kind),
        *(call for row in rows[:3] if row.volatility == "immutable" for call in sample_calls(row)),
    ]:
        answer = answer_of(server, sql)
        if answer is None or "\n" in (answer[0] or "") + sql or "``" in sql:
            continue
        if has_result_on_duckdb(engine, sql, answer):
            value = "NULL" if answer[0] is None else f"`` {answer[0]} ``"
            return f"`` {sql} `` → {value}".replace("|", "\\|")
    return ""


def main() -> None:
    with psycopg.connect(sys.argv[1], autocommit=True) as server, pgcrypto(server):
        server.execute("SET TimeZone = 'UTC'")
        FILE.write_text(page(server))


if __name__ == "__main__":
    main()
