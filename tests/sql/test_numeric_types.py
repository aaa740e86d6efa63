"""Expressions of declared numerics: PostgreSQL's values and display scales, in types with few digits."""

from __future__ import annotations

import random
from dataclasses import replace

import duckdb
import psycopg
import pytest

from tailgate.engine.ddl.view import create_view
from tailgate.lake.catalog import Catalog, Change, MaterializedView, Source, View
from tailgate.lake.catalog.codec import decode_item, encode_item
from tailgate.lake.types import BOOL, GENERAL, INT4, NUMERIC, Field, Type, numeric
from tailgate.sql.bind import bind_query, bind_view
from tailgate.sql.definitions import bind_definition
from tailgate.sql.numeric_types import EXACT, FIXED_ARRAYS, FIXED_RECURSION, MAINTAINED, OF_GENERAL, UNIFORM
from tailgate.sql.plan import Project, Query, Reduce
from tailgate.sql.plan.correlation import nodes
from tailgate.sql.render import spark
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import error_of, install
from tailgate.sql.statements import CreateView, parse
from tests.sql import numerics
from tests.sql.catalogs import make_catalog

TYPES = {
    "1.10": (3, 2),
    "0.05": (2, 2),
    "a + b": (18, 4),
    "a - j": (16, 2),
    "a * b": (22, 6),
    "a * (1 - b)": (23, 6),
    "c * c": (37, 0),
    "d * d": (7, 6),
    "i + 0.5": (7, 1),
    "a % b": (6, 4),
    "round(a, 1)": (15, 1),
    "round(b, 6)": (9, 6),
    "round(a, -2)": (38, 0),
    "trunc(a)": (14, 0),
    "abs(b)": (6, 4),
    "- d": (3, 3),
    "min(b)": (6, 4),
    "sum(b)": (38, 4),
    "CASE WHEN i > 1 THEN a ELSE b END": (17, 4),
    "coalesce(d, 1)": (13, 3),
    "e * e * e": (38, 15),
}

ERRORS = ("22003", "22012")


@pytest.mark.parametrize(("text", "decimal"), TYPES.items(), ids=TYPES)
def test_digits_of_results(text: str, decimal: tuple[int, int]) -> None:
    (column,) = bind_query(f"SELECT {text} FROM {numerics.RELATION}", numerics.catalog()).columns
    assert column.type.decimal == decimal
    assert column.type.typmod == -1


def test_values_are_postgres(postgres: str, seed: int) -> None:
    source = random.Random(seed)
    rows = numerics.random_rows(source, 40)
    expressions = numerics.random_expressions(source, 150)
    with psycopg.connect(postgres, autocommit=True) as server:
        expected = numerics.on_postgres(server, rows, [text for text, _ in expressions])
    connection = duckdb.connect()
    install(connection)
    connection.register(f"r{next(iter(numerics.catalog().items))}", numerics.table(rows).drop(["n"]))
    wrong = []
    for (text, query), values in zip(expressions, expected, strict=True):
        try:
            result = [numerics.shown(value) for (value,) in connection.execute(render(query.plan)).fetchall()]
        except duckdb.Error as error:
            result = error_of(error).sqlstate
        if differences(result, values):
            wrong.append((text, differences(result, values)))
    assert not wrong, wrong[:3]


def differences(result: list[str | None] | str, values: list[str | None] | str) -> object:
    """Returns the first values that differ. Which of several rows with an error comes first is not defined."""
    if isinstance(result, str) or isinstance(values, str):
        return None if result in ERRORS and values in ERRORS else (result, values)
    return [pair for pair in zip(result, values, strict=True) if pair[0] != pair[1]][:3]


RECURSION = "(WITH RECURSIVE r (v) AS (SELECT {1} FROM n {0} SELECT n.x FROM r, n WHERE r.v < n.x) SELECT max(v) FROM r)"


def view(text: str, catalog: Catalog) -> View:
    """Returns the item of a plain view, as CREATE VIEW makes it."""
    statement = parse(text)
    assert isinstance(statement, CreateView)
    query = bind_view(statement, catalog)
    stored = statement.query.text
    return View(catalog.next_id, "v", query.columns, depends=query.depends, sql=text, query=stored, numeric_rules=MAINTAINED)


def test_columns_of_views_keep_their_type() -> None:
    """CREATE OR REPLACE VIEW can change the expression of a column."""
    for expression in ("amount", "amount + 1", "1.25", "amount + amount", "- amount * 1"):
        (column,) = view(f"CREATE VIEW v AS SELECT {expression} AS x FROM orders", make_catalog()).columns
        assert column.type == Type("numeric", (10, 2)) if expression == "amount" else column.type.modifiers == (38, 2), expression


def test_views_of_earlier_versions_keep_their_types() -> None:
    """The state of their operators has these types: 38 digits in every result."""
    text = "SELECT user_id, sum(amount * (1 - 0.05)) AS s, min(amount) AS m FROM orders GROUP BY user_id"
    item = MaterializedView(100, "v", depends=(), query=text)
    old = encode_item(item)
    assert "numeric_rules" not in str(old)  # as earlier versions wrote it
    item = decode_item(old)
    assert isinstance(item, MaterializedView)
    assert item.numeric_rules == UNIFORM
    of_old = bind_definition(item, make_catalog())
    assert [f.type.modifiers for f in of_old.columns] == [(), (38, 4), (38, 2)]
    of_new = bind_definition(replace(item, numeric_rules=EXACT), make_catalog())
    assert [f.type for f in of_new.columns] == [f.type for f in of_old.columns]
    assert "numeric_rules" in str(encode_item(replace(item, numeric_rules=EXACT)))
    for rules in (UNIFORM, EXACT, OF_GENERAL):
        for text in ("coalesce(amount, '0')", "CASE WHEN user_id = 1 THEN amount ELSE '0.005' END"):
            quoted = bind_definition(replace(item, query=f"SELECT {text} AS x FROM orders", numeric_rules=rules), make_catalog())
            assert quoted.columns[0].type == Type("numeric", (10, 2)), text
    assert summed(of_old) == (38, 4)
    assert summed(of_new) == (15, 4)


def test_views_keep_general_columns_by_their_rules() -> None:
    """Views that earlier versions created read them with 16 digits after the decimal point, or have fixed results of fixed operands."""
    columns = (Field("x", GENERAL), Field("d", Type("numeric", (10, 2))), Field("i", INT4))
    catalog = Catalog().apply(Change((Source(Catalog().next_id, "n", columns, None, stored=True, envelope="upsert"),)))
    declared = Type("numeric", (10, 2))
    for expression, new, of_general, old in (
        ("x", GENERAL, GENERAL, numeric(16)),
        ("x * d", GENERAL, GENERAL, numeric(18)),
        ("coalesce(x, 0)", GENERAL, GENERAL, numeric(16)),
        ("sum(x)", GENERAL, GENERAL, numeric(16)),
        ("x > 1e300", BOOL, BOOL, None),
        ("d / i", GENERAL, numeric(16), numeric(16)),
        ("avg(d)", GENERAL, numeric(16), numeric(16)),
        ("avg(i)", GENERAL, numeric(16), numeric(16)),
        ("sqrt(d)", GENERAL, NUMERIC, NUMERIC),
        ("coalesce(d, 0)", GENERAL, numeric(2), numeric(2)),
        ("coalesce(d, '0')", GENERAL, declared, declared),
        ("d * d * d * d", GENERAL, numeric(8), numeric(8)),
        ("ARRAY[d, 1]", GENERAL.array(), numeric(2).array(), numeric(2).array()),
        ("array_append(ARRAY[d], coalesce(d, 0))", GENERAL.array(), numeric(2).array(), numeric(2).array()),
        ("array_agg(x)", GENERAL.array(), numeric(16).array(), numeric(16).array()),
        ("factorial(i)", GENERAL, numeric(0), numeric(0)),
        (RECURSION.format("UNION ALL", "x"), GENERAL, numeric(16), numeric(16)),
        (RECURSION.format("UNION ALL", "1.5"), GENERAL, numeric(16), numeric(16)),
        (RECURSION.format("UNION", "x"), GENERAL, numeric(16), numeric(16)),
        (RECURSION.format("UNION", "1.5"), GENERAL, numeric(16), numeric(16)),
        ("sum(d)", numeric(2), numeric(2), numeric(2)),
        ("d * i", numeric(2), numeric(2), numeric(2)),
        ("x::numeric(10, 2)", declared, declared, declared),
    ):
        text = f"CREATE VIEW v AS SELECT {expression} AS c FROM n"
        item = view(text, catalog)
        assert item.columns[0].type == new, expression
        for rules, type in ((EXACT, old), (OF_GENERAL, of_general)):
            if type is None:
                continue
            of_old = bind_definition(replace(item, numeric_rules=rules), catalog)
            assert of_old.columns[0].type == type, expression
            earlier = replace(item, columns=of_old.columns, numeric_rules=rules)
            statement = parse(text)
            assert isinstance(statement, CreateView)
            replaced = create_view(statement, text, catalog.apply(Change((earlier,))), replacing=earlier)
            assert (replaced.columns, replaced.numeric_rules) == (earlier.columns, rules), expression


def test_a_view_has_a_list_if_array_fill_tells_its_one_dimension() -> None:
    for arguments, is_list in {
        "ARRAY[2]": True,
        "'{2}'": True,
        "ARRAY[2], ARRAY[1]": True,
        "ARRAY[2], ARRAY[0]": False,
        "ARRAY[2, 3]": False,
    }.items():
        type = view(f"CREATE VIEW v AS SELECT array_fill(1, {arguments}) AS c", Catalog()).columns[0].type
        assert type == INT4.array(multidimensional=not is_list), arguments


def test_views_with_fixed_elements_of_arrays_keep_them() -> None:
    columns = (Field("x", GENERAL), Field("d", Type("numeric", (10, 2))), Field("i", INT4))
    catalog = Catalog().apply(Change((Source(Catalog().next_id, "n", columns, None, stored=True, envelope="upsert"),)))
    for expression, type in {
        "ARRAY[d, 1]": numeric(2).array(),
        "ARRAY(SELECT x FROM n)": numeric(16).array(),
        "array_agg(x)": numeric(16).array(),
        "array_agg(DISTINCT x)": numeric(16).array(),
        "mode() WITHIN GROUP (ORDER BY x)": numeric(16),
        "array_fill(i, ARRAY[i])": INT4.array(),
        "factorial(i)": numeric(0),
        "to_number('1', '9')": NUMERIC,
        "d / i": GENERAL,
    }.items():
        item = view(f"CREATE VIEW v AS SELECT {expression} AS c FROM n", catalog)
        assert item.columns[0].type != type or expression == "d / i", expression
        assert bind_definition(replace(item, numeric_rules=FIXED_ARRAYS), catalog).columns[0].type == type, expression


def test_views_with_fixed_recursive_queries_keep_them() -> None:
    columns = (Field("x", GENERAL),)
    catalog = Catalog().apply(Change((Source(Catalog().next_id, "n", columns, None, stored=True, envelope="upsert"),)))
    cycle = RECURSION.format("UNION ALL", "x").replace(") SELECT max", ") CYCLE v SET c USING p SELECT max")
    for query, general in {
        RECURSION.format("UNION", "x"): False,
        cycle: False,
        RECURSION.format("UNION ALL", "x"): True,
        "ARRAY[x]": True,
    }.items():
        item = view(f"CREATE VIEW v AS SELECT {query} AS c FROM n", catalog)
        assert item.columns[0].type.general, query
        earlier = bind_definition(replace(item, numeric_rules=FIXED_RECURSION), catalog).columns[0].type
        assert (earlier.element if earlier.is_array else earlier) == (GENERAL if general else numeric(16)), query
    text = "to_char(x, '9')"
    item = view(f"CREATE VIEW v AS SELECT {text} AS c FROM n", catalog)
    texts = [render_spark(bind_definition(replace(item, numeric_rules=rules), catalog)) for rules in (FIXED_RECURSION, MAINTAINED)]
    assert ["tg_to_char_numeric" in texts[0], "tg_to_char_general" in texts[1]] == [True, True]


def render_spark(query: Query) -> str:
    """Returns Spark's SQL of the first column of a projection."""
    assert isinstance(query.plan, Project)
    return spark.expression(query.plan.expressions[0], ("c0",))


def summed(query: Query) -> tuple[int, ...]:
    """Returns the modifiers of the first aggregate's argument."""
    (reduce,) = (node for node in nodes(query.plan) if isinstance(node, Reduce))
    return reduce.aggregates[0].arguments[0].type.modifiers
