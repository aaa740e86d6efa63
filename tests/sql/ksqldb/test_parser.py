"""The grammar of ksqlDB: texts and their values."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tailgate.lake.errors import DatatypeMismatch, InvalidParameterValue, StatementTooComplex, SyntaxError_, TailgateError
from tailgate.sql.ksqldb.expression_parser import KsqldbCursor, expression, type_name
from tailgate.sql.ksqldb.expressions import (
    Between,
    CaseExpression,
    Cast,
    ColumnReference,
    Constant,
    Constructor,
    FieldAccess,
    FunctionCall,
    InList,
    JoinClause,
    Lambda,
    Operation,
    SelectItem,
    SelectQuery,
    SourceName,
    Subscript,
    TypeName,
    WindowClause,
    walk,
)
from tailgate.sql.ksqldb.parser import parse
from tailgate.sql.ksqldb.statements import (
    AssertSchema,
    AssertTopic,
    ColumnElement,
    ControlQuery,
    CreateAs,
    CreateConnector,
    CreateItem,
    DescribeItem,
    DropItem,
    InsertQuery,
    InsertValues,
    ListItems,
    PushQuery,
)

A, B = ColumnReference("a"), ColumnReference("b")
ONE = Constant(1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a", A),
        ("s.`a`", ColumnReference("A", "s")),
        ("-1", Constant(-1)),
        ("1.50", Constant(Decimal("1.50"))),
        ("1e3", Constant(1000.0)),
        ("'it''s'", Constant("it's")),
        ("NULL", Constant(None)),
        ("true", Constant(True)),
        ("a + b * 1", Operation("+", (A, Operation("*", (B, ONE))))),
        ("(a + b) * 1", Operation("*", (Operation("+", (A, B)), ONE))),
        ("NOT a = 1 AND b OR a", Operation("or", (Operation("and", (Operation("not", (Operation("=", (A, ONE)),)), B)), A))),
        ("a != b", Operation("<>", (A, B))),
        ("a IS NOT NULL", Operation("not", (Operation("is null", (A,)),))),
        ("a IS DISTINCT FROM b", Operation("is distinct from", (A, B))),
        ("a BETWEEN 1 AND b", Between(A, ONE, B)),
        ("a NOT IN (1, b)", InList(A, (ONE, B), negated=True)),
        ("a LIKE 'x!%' ESCAPE '!'", Operation("like", (A, Constant("x!%"), Constant("!")))),
        ("s.partition + final", Operation("+", (ColumnReference("partition", "s"), ColumnReference("final")))),
        ("a->b->`C d`", FieldAccess(FieldAccess(A, "b"), "C d")),
        ("a->*", FieldAccess(A, None)),
        ("a['k'][-1]", Subscript(Subscript(A, Constant("k")), Constant(-1))),
        ("UCASE(a)", FunctionCall("ucase", (A,))),
        ("count(*)", FunctionCall("count", (), star=True)),
        ("CASE a WHEN 1 THEN b ELSE a END", CaseExpression(A, ((ONE, B),), A)),
        ("CAST(a AS DECIMAL(4, 2))", Cast(A, TypeName("decimal", (4, 2)))),
        ("ARRAY[1, a]", Constructor("array", (ONE, A))),
        ("MAP('k' := a)", Constructor("map", (A,), (Constant("k"),))),
        ("STRUCT(x := a, y := 1)", Constructor("struct", (A, ONE), ("x", "y"))),
        ("x => x + 1", Lambda(("x",), Operation("+", (ColumnReference("x"), ONE)))),
        ("REDUCE(a, 1, (s, x) => s)", FunctionCall("reduce", (A, ONE, Lambda(("s", "x"), ColumnReference("s"))))),
    ],
)
def test_expressions(text: str, value: object) -> None:
    cursor = KsqldbCursor(text)
    assert expression(cursor) == value
    cursor.finish()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("VARCHAR", TypeName("varchar")),
        ("STRING", TypeName("varchar")),
        ("INTEGER", TypeName("int")),
        ("VARCHAR(STRING)", TypeName("varchar")),
        ("DECIMAL(4,2)", TypeName("decimal", (4, 2))),
        ("ARRAY<INT>", TypeName("array", arguments=(TypeName("int"),))),
        ("MAP<VARCHAR, ARRAY<INT>>", TypeName("map", arguments=(TypeName("varchar"), TypeName("array", arguments=(TypeName("int"),))))),
        ("STRUCT<a INT, `b` DATE>", TypeName("struct", arguments=(TypeName("int"), TypeName("date")), fields=("a", "B"))),
        ("ARRAY<INT,>", TypeName("array", arguments=(TypeName("int"),))),  # in statements of earlier versions
    ],
)
def test_types(text: str, value: TypeName) -> None:
    cursor = KsqldbCursor(text)
    assert type_name(cursor) == value
    cursor.finish()


def test_parts_of_long_chains() -> None:
    """Regression: each operand took two frames of Python's stack, also in the check of a statement for refused parts."""
    parsed = expression(KsqldbCursor(" + ".join(f"(a * {n})" for n in range(2_000))))
    assert [part.value for part in walk(parsed) if isinstance(part, Constant)] == list(range(2_000))


STAR = (SelectItem(None),)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "CREATE STREAM IF NOT EXISTS s (k VARCHAR KEY, h BYTES HEADER('x')) WITH (kafka_topic='t', \\\n Partitions=2)",
            CreateItem(
                "stream",
                "s",
                (ColumnElement("k", TypeName("varchar"), "key"), ColumnElement("h", TypeName("bytes"), "header", "x")),
                (("KAFKA_TOPIC", "t"), ("PARTITIONS", 2)),
                if_not_exists=True,
            ),
        ),
        (
            "CREATE OR REPLACE SOURCE TABLE t (k INT PRIMARY KEY) WITH (format = 'json');",
            CreateItem(
                "table", "t", (ColumnElement("k", TypeName("int"), "primary key"),), (("FORMAT", "json"),), replace=True, source=True
            ),
        ),
        (
            "CREATE TABLE t AS SELECT a x, count(*) n FROM s WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 1 DAY) GROUP BY a EMIT FINAL",
            CreateAs(
                "table",
                "t",
                (),
                SelectQuery(
                    (SelectItem(A, "x"), SelectItem(FunctionCall("count", (), star=True), "n")),
                    SourceName("s"),
                    window=WindowClause("tumbling", 10_000, grace=86_400_000),
                    group_by=(A,),
                    emit="final",
                ),
            ),
        ),
        (  # a statement of an earlier version
            "SELECT a FROM s WINDOW SESSION (1 SECOND, GRACE PERIOD 1 DAY, RETENTION 2 DAYS) EMIT CHANGES",
            PushQuery(
                SelectQuery(
                    (SelectItem(A),),
                    SourceName("s"),
                    window=WindowClause("session", 1000, retention=172_800_000, grace=86_400_000),
                    emit="changes",
                )
            ),
        ),
        (
            "SELECT l.* FROM s l FULL OUTER JOIN r WITHIN (1 HOUR, 2 MINUTES) GRACE PERIOD 1 SECOND ON l.a = r.b EMIT CHANGES LIMIT 3",
            PushQuery(
                SelectQuery(
                    (SelectItem(None, source="l"),),
                    SourceName("s", "l"),
                    (
                        JoinClause(
                            "full",
                            SourceName("r"),
                            Operation("=", (ColumnReference("a", "l"), ColumnReference("b", "r"))),
                            (3_600_000, 120_000),
                            1000,
                        ),
                    ),
                    emit="changes",
                    limit=3,
                )
            ),
        ),
        ("INSERT INTO s (a) VALUES ('x')", InsertValues("s", ("a",), (Constant("x"),))),
        ("INSERT INTO s WITH (query_id='q') SELECT * FROM r", InsertQuery("s", SelectQuery(STAR, SourceName("r")), (("QUERY_ID", "q"),))),
        ("DROP TABLE IF EXISTS t DELETE TOPIC", DropItem("table", "t", if_exists=True, delete_topic=True)),
        ("SHOW ALL TOPICS EXTENDED", ListItems("topics", extended=True, all=True)),
        ("LIST SINK CONNECTORS", ListItems("sink connectors")),
        ("DESCRIBE s EXTENDED", DescribeItem("s", extended=True)),
        ("DESCRIBE EXTENDED s", DescribeItem("s", extended=True)),
        ("DESCRIBE extended", DescribeItem("extended")),
        ("DESCRIBE STREAMS EXTENDED", DescribeItem("", "streams", extended=True)),
        ("TERMINATE ALL", ControlQuery("terminate", None)),
        ("PAUSE CSAS_S_1", ControlQuery("pause", "csas_s_1")),
        ("ASSERT NOT EXISTS TOPIC t WITH (partitions=1) TIMEOUT 3 SECONDS", AssertTopic("T", (("PARTITIONS", 1),), True, 3000)),
        ("ASSERT SCHEMA SUBJECT 't-value' ID 3", AssertSchema("t-value", 3)),
        (
            "CREATE SOURCE CONNECTOR c WITH ('Connector.Class' = 'x', 'tasks.max' = 1)",
            CreateConnector("source", "c", (("Connector.Class", "x"), ("tasks.max", 1))),
        ),
    ],
)
def test_statements(text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("text", "error", "position"),
    [
        ("CREATE STREAM", SyntaxError_, 13),
        ("CREATE STREAM s (a) WITH (kafka_topic = 't')", SyntaxError_, 18),
        ("CREATE STREAM s WITH (format = 'json', FORMAT = 'avro')", InvalidParameterValue, 39),
        ("CREATE STREAM s WITH (format = 1 + 1)", SyntaxError_, 31),
        ("SELECT a FROM s WINDOW TUMBLING (SIZE 1 YEAR) EMIT CHANGES", SyntaxError_, 40),
        ("SELECT a FROM s WINDOW HOPPING (SIZE 1 DAY) EMIT CHANGES", SyntaxError_, 42),
        ("SELECT a FROM s WHERE 'x", SyntaxError_, 22),
        ("SELECT `a FROM s", SyntaxError_, 7),
        ("SELECT a FROM s; LIST STREAMS", SyntaxError_, 17),
        ("INSERT INTO s (a) SELECT a FROM s", SyntaxError_, 18),
        ("SELECT " + "(" * 1000 + "1" + ")" * 1000 + " FROM s", StatementTooComplex, 67),
        ("SELECT " + "9" * 5_000 + " FROM s", DatatypeMismatch, 7),
        ("SELECT a FROM s LIMIT " + "9" * 5_000, SyntaxError_, 22),
        ("CREATE STREAM s (a " + "ARRAY<" * 1000 + "INT" + ">" * 1000 + ")", StatementTooComplex, 379),
    ],
)
def test_errors(text: str, error: type[TailgateError], position: int) -> None:
    with pytest.raises(error) as caught:
        parse(text)
    assert caught.value.position == position
