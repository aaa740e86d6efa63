"""INSERT INTO … VALUES: keys, values and times of messages, the order of the columns, and those that it must and must not have."""

from __future__ import annotations

import json

import pytest

from tailgate.engine.ddl.ksqldb import message_of
from tailgate.lake.errors import TailgateError
from tailgate.sql.statements import InsertMessage, parse
from tests.engine.ddl.ksqldb_items import NESTED, READINGS, declared, no_expression, no_registry

STREAM = "CREATE STREAM s (n INT, k VARCHAR KEY, t VARCHAR) WITH (kafka_topic = 's', value_format = 'json')"
TABLE = "CREATE TABLE t (k INT PRIMARY KEY, l INT PRIMARY KEY, n INT) WITH (kafka_topic = 't', format = 'json')"

EXPRESSIONS = "CREATE STREAM e (n BIGINT, x DECIMAL(14, 1), t VARCHAR, a ARRAY<INT>) WITH (kafka_topic = 'e', value_format = 'json')"
ALL_NULL = b'{"N":null,"X":2.0,"T":null,"A":null}'


def written(text: str, declaration: str, texts: list[str] | None = None) -> tuple[bytes | None, bytes | None]:
    """Returns the key and the value of a message. Adds the texts of expressions, whose values are NULL, to `texts`."""
    texts = [] if texts is None else texts
    statement = parse(text, "ksqldb")
    assert isinstance(statement, InsertMessage)
    message = message_of(statement.statement, declared(declaration), no_registry, texts.append)[1]
    return message.key, message.value


def test_values_without_a_list_begin_with_those_of_the_key() -> None:
    assert written("INSERT INTO s VALUES ('a', 1, 'x')", STREAM) == (b"a", b'{"N":1,"T":"x"}')
    assert written("INSERT INTO s (n, k) VALUES (1, 'a')", STREAM) == (b"a", b'{"N":1,"T":null}')
    assert written("INSERT INTO s (n) VALUES (1)", STREAM) == (None, b'{"N":1,"T":null}')


@pytest.mark.parametrize(
    ("columns", "values", "key", "value"),
    [
        ("id INT, t VARCHAR", "5, 'x'", b"5", b'{"ID":5,"T":"x"}'),
        ("t VARCHAR, id VARCHAR", "'x', 'a'", b"a", b'{"T":"x","ID":"a"}'),
        ("id BOOLEAN", "true", b"true", b'{"ID":true}'),
        ("t VARCHAR, id INT", "'x', NULL", None, b'{"T":"x","ID":null}'),
    ],
)
def test_an_unnamed_key_is_the_text_of_its_column(columns: str, values: str, key: bytes | None, value: bytes) -> None:
    declaration = f"CREATE STREAM u ({columns}) WITH (kafka_topic = 'u', value_format = 'json', key = 'ID')"
    assert written(f"INSERT INTO u VALUES ({values})", declaration) == (key, value)


def test_expressions_are_evaluated() -> None:
    """A value has the type of its column, or is a narrower number."""
    texts: list[str] = []
    assert written("INSERT INTO e VALUES (ABS(-1) + 1, 2, UCASE('a'), ARRAY[1 + 1])", EXPRESSIONS, texts) == (None, ALL_NULL)
    assert len(texts) == 3
    assert texts[0].startswith("CAST(") and texts[0].endswith(" AS bigint)")
    written("INSERT INTO e (x) VALUES (1 + 1.5)", EXPRESSIONS, texts)
    assert texts[3].endswith(" AS numeric(14, 1))")


@pytest.mark.parametrize(
    ("text", "declaration", "sqlstate", "message"),
    [
        ("INSERT INTO t (k, n) VALUES (1, 2)", TABLE, "23502", r"into 'T'. Value for primary key column\(s\) L is required for tables"),
        ("INSERT INTO t (n) VALUES (2)", TABLE, "23502", r"column\(s\) K, L is required"),
        ("INSERT INTO s (rowpartition, n) VALUES (1, 2)", STREAM, "42809", "Inserting into column `ROWPARTITION` is not allowed"),
        ("INSERT INTO s (rowoffset, n) VALUES (1, 2)", STREAM, "42809", "Inserting into column `ROWOFFSET` is not allowed"),
    ],
)
def test_wrong_columns(text: str, declaration: str, sqlstate: str, message: str) -> None:
    with pytest.raises(TailgateError, match=message) as error:
        written(text, declaration)
    assert (error.value.sqlstate, error.value.position) == (sqlstate, 0)


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("INSERT INTO e (n) VALUES (UCASE('a'))", "42804", r"Expected type BIGINT for field `N` but got VARCHAR\(STRING\)"),
        ("INSERT INTO e (t) VALUES (1 + 1)", "42804", r"Expected type VARCHAR\(STRING\) for field `T` but got INTEGER"),
        ("INSERT INTO e (n) VALUES (n + 1)", "42703", "INSERT column 'N' cannot be resolved"),
        ("INSERT INTO e (n) VALUES (ROWTIME)", "42703", "INSERT column 'ROWTIME' cannot be resolved"),
        ("INSERT INTO e (n) VALUES (ROWOFFSET)", "42703", "INSERT column 'ROWOFFSET' cannot be resolved"),
        ("INSERT INTO e (n) VALUES (COUNT(1))", "42803", "INSERT does not support aggregate functions: COUNT"),
    ],
)
def test_wrong_expressions(text: str, sqlstate: str, message: str) -> None:
    with pytest.raises(TailgateError, match=message) as error:
        written(text, EXPRESSIONS)
    assert error.value.sqlstate == sqlstate
    assert error.value.position is not None and error.value.position > 0


def test_messages_with_nested_values() -> None:
    statement = parse(
        "INSERT INTO n (tags, sizes, day, owner) VALUES (ARRAY['a', NULL], MAP('x' := 1.5), '1970-01-03',"
        " STRUCT(id := 5, `names` := ARRAY[STRUCT(`first` := 'ann')]))"
    )
    assert isinstance(statement, InsertMessage)
    message = message_of(statement.statement, declared(NESTED), no_registry, no_expression)[1]
    assert message.value is not None
    assert json.loads(message.value) == {
        "TAGS": ["a", None],
        "SIZES": {"x": 1.5},
        "DAY": 2,
        "AT": None,
        "OWNER": {"ID": 5, "names": [{"first": "ann"}]},
    }
    for values, error in (
        ("(tags) VALUES (MAP('a' := 1))", "Expected type ARRAY<VARCHAR.STRING.> for field `TAGS` but got MAP"),
        ("(owner) VALUES (STRUCT(other := 1))", "for field `OWNER` but got STRUCT"),
        ("(sizes) VALUES (MAP('a' := 'many'))", "Expected type DECIMAL"),
    ):
        wrong = parse(f"INSERT INTO n {values}", "ksqldb")
        assert isinstance(wrong, InsertMessage)
        with pytest.raises(TailgateError, match=error):
            message_of(wrong.statement, declared(NESTED), no_registry, no_expression)


def test_messages() -> None:
    catalog = declared(READINGS)

    def message(text: str) -> tuple[bytes | None, bytes | None, int | None]:
        statement = parse(text, "ksqldb")
        assert isinstance(statement, InsertMessage)
        written = message_of(statement.statement, catalog, no_registry, no_expression)[1]
        return written.key, written.value, written.timestamp

    assert message("INSERT INTO readings VALUES ('é', 'x\"y', -1)") == ("é".encode(), b'{"AREA":"x\\"y","READING":-1}', None)
    assert message("INSERT INTO readings (reading, rowtime) VALUES (1, 1234)") == (None, b'{"AREA":null,"READING":1}', 1234)
    catalog = declared(
        "CREATE TABLE t (b INT PRIMARY KEY, a DOUBLE PRIMARY KEY, n DECIMAL(4, 2), day DATE, t TIME, at TIMESTAMP, raw BYTES)"
        " WITH (kafka_topic = 't', key_format = 'json', value_format = 'json')",
        catalog,
    )
    row = "(1, 2, '3.5', '1970-01-03', '00:00:01', '1970-01-01T00:00:01.500', 'AP8=')"
    value = b'{"N":3.50,"DAY":2,"T":1000,"AT":1500,"RAW":"AP8="}'
    assert message(f"INSERT INTO t VALUES {row}") == (b'{"B":1,"A":2.0}', value, None)
    catalog = declared("CREATE STREAM k (i BIGINT KEY, d DOUBLE) WITH (kafka_topic = 'k', value_format = 'kafka')", catalog)
    assert message("INSERT INTO k VALUES (258, 1)") == (bytes(6) + b"\1\2", b"\x3f\xf0" + bytes(6), None)
    assert message("INSERT INTO k (i) VALUES (1)")[1] is None
    catalog = declared(READINGS.replace("readings", "last"), catalog)
    for values, error in (
        ("(sensor) VALUES ('a', 'b')", "Expected number columns and values to match"),
        ("(none) VALUES ('a')", "Column name NONE does not exist"),
        ("(sensor, sensor) VALUES ('a', 'b')", "Column name SENSOR is specified more than once"),
        ("(reading) VALUES (2147483648)", "Expected type INTEGER for field `READING`"),
    ):
        with pytest.raises(TailgateError, match=error):
            message(f"INSERT INTO readings {values}")
