"""ksqlDB's functions and expressions have the documented types and values, on DuckDB; `corpus_on_spark` compares Spark."""

from __future__ import annotations

import os
import re

import duckdb
import pytest

from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import StatementTooComplex, TailgateError
from tailgate.sql.bind import bind_query
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expression_parser import KsqldbCursor, expression
from tailgate.sql.ksqldb.functions import AGGREGATE_NAMES, ROWS, TABLE_NAMES
from tailgate.sql.ksqldb.queries.groups import Grouping
from tailgate.sql.ksqldb.queries.scope import Scope
from tailgate.sql.ksqldb.queries.translation import Translator
from tailgate.sql.ksqldb.typed.values import Typed
from tailgate.sql.render.duckdb import render
from tests.sql.ksqldb import function_page
from tests.sql.ksqldb.function_examples import ARROW, FILE, NO_COLUMNS, Example, bound, examples, shown


def result(example: Example, engine: duckdb.DuckDBPyConnection) -> str:
    query, type = bound(example)
    row = engine.execute(render(query.plan)).fetchone()
    assert row is not None
    return shown(row[0], type)


def test_values(engine: duckdb.DuckDBPyConnection) -> None:
    results = {example.text: result(example, engine) for example in examples()}
    if os.environ.get("TAILGATE_UPDATE"):
        FILE.write_text("".join(f"{text}{ARROW}{value}\n" for text, value in results.items()))
    assert {e.text: e.result for e in examples()} == results


def test_times_beyond_the_year_9999_are_null_in_pull_queries(engine: duckdb.DuckDBPyConnection) -> None:
    """Python, which computes them, has none; Java has."""
    for text in ("PARSE_TIMESTAMP('9999-12-31 24', 'yyyy-MM-dd HH')", "PARSE_DATE('9999-999', 'yyyy-DDD')"):
        assert result(Example(text, ""), engine).startswith("NULL "), text


def test_a_part_that_occurs_twice_in_what_fails_is_null(engine: duckdb.DuckDBPyConnection) -> None:
    """Regression: DuckDB evaluated the part before TRY, and the query failed."""
    scope = Scope({"t": types.VARCHAR}, ("v",))
    typed = Translator(scope, aggregates=False).value(expression(KsqldbCursor("CAST(t AS TIME)")))
    query = bind_query(f"SELECT {typed.text} AS x FROM (VALUES ('10:00:00'), ('x')) AS v (t)", Catalog())
    assert [row[0] for row in engine.execute(render(query.plan)).fetchall()] == [36_000_000_000, None]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a AND b", [None, None, False, None]),
        ("a OR b", [None, None, None, True]),
        ("a OR i = 1", [None, None, True, True]),
        ("i = 2 OR a OR b", [None, None, None, True]),
        ("i = 1 OR a", [True, True, True, True]),
        ("i = 1 AND s->x AND b", [None, None, False, None]),
        ("CASE WHEN a OR i = 1 THEN 1 ELSE 0 END = 1", [False, False, True, True]),
        ("(a AND i = 1) OR i = 1", [None, None, True, True]),
        ("NOT a OR i = 1", [None, None, True, True]),
        ("i = 2 OR (i = 1 AND a) OR b", [None, None, None, True]),
        ("(a AND i = NULLIF(i, 1)) OR (i = 1 AND NOT b) OR i = 1", [None, None, None, None]),
        ("((a OR i = 1) AND (b OR i = 2)) OR NOT (a AND b)", [None, None, None, None]),
        ("(i = 1 OR a) AND (NOT b OR i = 2 OR b)", [True, True, None, None]),
        ("CASE WHEN a THEN b ELSE true END", [None, None, True, None]),
        ("CASE WHEN a AND s->x THEN false WHEN i = 2 THEN true ELSE i = 1 END", [None, None, True, False]),
        ("COALESCE(a, b) AND i = 2", [False, False, False, False]),
        ("NULLIF(a, true) OR i = 1", [None, None, True, None]),
    ],
)
def test_a_boolean_that_is_null_decides_and_or_and_case(text: str, values: list[bool | None], engine: duckdb.DuckDBPyConnection) -> None:
    """The operands are evaluated in order, as in ksqlDB."""
    structure = types.TypeName("struct", arguments=(types.BOOLEAN,), fields=("x",))
    scope = Scope({"a": types.BOOLEAN, "b": types.BOOLEAN, "i": types.INT, "s": structure}, ("v",))
    parsed = expression(KsqldbCursor(text))
    value, condition = Translator(scope, aggregates=False).value(parsed).text, Translator(scope, clause="WHERE").where(parsed)
    rows = ((a, b, 1, f"'{{\"X\": {a}}}'::jsonb") for a, b in (("null", "false"), ("null", "true"), ("false", "null"), ("true", "null")))
    table = ", ".join(f"({a}::boolean, {b}::boolean, {i}, {s})" for a, b, i, s in rows)
    query = bind_query(f"SELECT {value} AS x, coalesce({condition}, false) AS y FROM (VALUES {table}) AS v (a, b, i, s)", Catalog())
    assert engine.execute(render(query.plan)).fetchall() == [(value, value is True) for value in values]


def test_a_key_of_a_group_is_an_operand_of_or() -> None:
    """Its own operands have no values in a group."""
    key = expression(KsqldbCursor("a OR b"))
    scope = Scope({"a": types.BOOLEAN, "b": types.BOOLEAN}, ("v",))
    translator = Translator(scope, grouping=Grouping({}, {key: Typed("k", types.BOOLEAN)}))
    parsed = expression(KsqldbCursor("a OR b OR COUNT(*) > 1"))
    assert translator.expression(parsed).text == "(k OR coalesce((count(*) > 1), false))"
    assert translator.where(parsed) == "(k OR (count(*) > 1))"


@pytest.mark.parametrize("form", ["(({} AND a) OR a)", "CASE WHEN {} THEN a ELSE NOT a END"])
def test_a_condition_that_is_nested_too_deeply_is_refused(form: str) -> None:
    """Operands that may be NULL occur twice."""
    text = "a"
    for _ in range(20):
        text = form.format(text)
    with pytest.raises(StatementTooComplex, match="condition is nested too deeply"):
        Translator(Scope({"a": types.BOOLEAN}, ("v",)), aggregates=False).value(expression(KsqldbCursor(text)))


def test_long_lists_are_no_deep_conditions() -> None:
    """Regression: their characters counted, although they do not occur twice."""
    listed = ", ".join(f"'{n:040}'" for n in range(3_000))
    text = f"t IN ({listed}) OR a OR t = 'x'"
    scope = Scope({"a": types.BOOLEAN, "t": types.VARCHAR}, ("v",))
    assert Translator(scope, aggregates=False).where(expression(KsqldbCursor(text))).count("'") == 6_002


def test_calls_of_replace_in_calls_of_replace_stay_short() -> None:
    """Regression: the text was twice as long with each call."""
    text = "t"
    for _ in range(20):
        text = f"REPLACE({text}, 'a', '')"
    typed = Translator(Scope({"t": types.VARCHAR}, ("v",)), aggregates=False).value(expression(KsqldbCursor(text)))
    assert typed.text.count("replace(") == 20


def test_queries_of_earlier_versions_keep_their_values(engine: duckdb.DuckDBPyConnection) -> None:
    """A row of a table that leaves must have the values with which it came."""
    calls = (
        "ksqldb_initcap(E'a\\tb c')",
        "ksqldb_split('', '')",
        "ksqldb_regexp_split('', '')",
        "try(ksqldb_regexp_extract('\\p{L}', 'a', 0))",
        """try(ksqldb_cast('"2021"', '"varchar"', '"timestamp"'))""",
    )
    query = bind_query(f"SELECT {', '.join(calls)}", Catalog())
    assert engine.execute(render(query.plan)).fetchone() == ("A\tb C", "[]", "[]", None, None)


def test_every_function_has_an_example() -> None:
    called = {name.lower() for e in examples() for name in re.findall(r"([A-Z_0-9]+)\(", e.text)}
    names = {row.name.partition(":")[0] for row in ROWS if not row.volatile} - AGGREGATE_NAMES - TABLE_NAMES
    assert names - called == set()


def test_the_page_is_that_of_the_rows() -> None:
    assert function_page.FILE.read_text() == function_page.page()


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("UUID()", "0A000", r"UUID\(\) is not supported"),
        ("RANDOM() + 1", "0A000", "its value differs"),
        ("LCASE(1)", "42883", r"'LCASE' does not accept parameters \(INTEGER\)"),
        ("ARRAY_CONTAINS(ARRAY[1], 'a')", "42883", "'ARRAY_CONTAINS' does not accept"),
        ("NO_FUNCTION(1)", "42883", "find any functions with the name 'NO_FUNCTION'"),
        ("ARRAY[1, 'a']", "42804", "invalid input syntax for type INTEGER"),
        ("ARRAY[]", "42804", "cannot be empty"),
        ("MAP(1 := 2)", "42804", "Only STRING keys"),
        ("STRUCT(a := 1, a := 2)", "42701", "Duplicate field names"),
        ("STRUCT(a := 1)->b", "42703", r"Could not find field 'B' in 'STRUCT\(A:=1\)'"),
        ("ARRAY[1]->a", "42804", "Expected STRUCT type"),
        ("ARRAY[1]['a']", "42804", "Subscript of type"),
        ("CAST(ARRAY[1] AS INT)", "42846", r"Cast of ARRAY<INTEGER> to INTEGER"),
        ("CAST(1 AS MAP<INT, INT>)", "0A000", "MAP<INTEGER, INTEGER> is not supported"),
        ("DATEADD(DECADES, 1, FROM_DAYS(1))", "22023", "DATEADD has no unit DECADES"),
        ("1 + true", "42804", "Unsupported arithmetic types"),
        ("TRANSFORM(ARRAY[1], (x, y) => x)", "42883", "expects a lambda with 1 arguments here, got: 2"),
        ("REDUCE(ARRAY[1], 1, (x, x) => x)", "42701", "must have different names: X"),
        ("REDUCE(ARRAY[1], 1, (s, x) => 'a')", "42804", "the state of REDUCE is INTEGER"),
        ("TRANSFORM(1, x => x)", "42883", r"'TRANSFORM' does not accept parameters \(INTEGER, LAMBDA\)"),
        ("TRANSFORM(ARRAY[1], x => x + y)", "42703", "SELECT column 'Y' cannot be resolved"),
        ("FILTER(ARRAY[1], x => x)", "42804", "should evaluate to BOOLEAN but is INTEGER"),
        ("LCASE(x => x)", "42883", "a lambda is an argument of TRANSFORM, FILTER and REDUCE only"),
        ("1 = NULL", "42804", "Comparison with NULL not supported"),
        ("1 = 'a'", "42804", "Operator EQUAL cannot be used to compare INTEGER and STRING"),
        ("true < false", "42804", "Operator LESS_THAN cannot be used to compare BOOLEAN and BOOLEAN"),
        ("ARRAY[1] >= ARRAY[1]", "42804", "Operator GREATER_THAN_OR_EQUAL cannot be used"),
        ("1 BETWEEN 'a' AND 2", "42804", "Operator GREATER_THAN_OR_EQUAL cannot be used to compare INTEGER and STRING"),
        ("1 IN (1, 'a')", "42804", 'invalid input syntax for type INTEGER: "a"'),
        ("CASE WHEN true THEN 1 ELSE 'a' END", "42804", "Type for the default clause should be the same as for 'THEN' clauses"),
        ("CASE WHEN true THEN 1 WHEN false THEN 'a' END", "42804", "THEN expression 'WHEN false THEN 'a'' has type: STRING"),
        ("CASE WHEN 1 THEN 1 END", "42804", "WHEN operand type should be boolean.\nType for '1' is INTEGER"),
        (
            "CASE WHEN true THEN ARRAY[1, ABS(2)] ELSE ARRAY[UCASE('a')] END",
            "42804",
            "Type for the default clause should be the same as for 'THEN' clauses.\nTHEN type: ARRAY<INTEGER>.\nDEFAULT type: ARRAY",
        ),
        ("1 LIKE 'a'", "42804", "LIKE expects STRING"),
        ("'a' || 1", "42883", "'CONCAT' does not accept parameters"),
        ("NOT 1", "42804", "NOT expects BOOLEAN"),
        ("FROM_DAYS(1) = 'a'", "22007", 'invalid input syntax for type DATE: "a"'),
    ],
)
def test_refused(text: str, sqlstate: str, message: str) -> None:
    with pytest.raises(TailgateError, match=message) as error:
        Translator(NO_COLUMNS, aggregates=False).value(expression(KsqldbCursor(text)))
    assert error.value.sqlstate == sqlstate
