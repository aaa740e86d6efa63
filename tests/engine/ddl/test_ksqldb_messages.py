"""INSERT INTO … VALUES: the order of the columns, and the columns that it must and must not have."""

from __future__ import annotations

import pytest

from tailgate.engine.ddl.ksqldb import message_of
from tailgate.lake.errors import TailgateError
from tailgate.sql.statements import InsertMessage, parse
from tests.engine.ddl.test_ksqldb import declared, no_registry

STREAM = "CREATE STREAM s (n INT, k VARCHAR KEY, t VARCHAR) WITH (kafka_topic = 's', value_format = 'json')"
TABLE = "CREATE TABLE t (k INT PRIMARY KEY, l INT PRIMARY KEY, n INT) WITH (kafka_topic = 't', format = 'json')"


def written(text: str, declaration: str) -> tuple[bytes | None, bytes | None]:
    statement = parse(text, "ksqldb")
    assert isinstance(statement, InsertMessage)
    message = message_of(statement.statement, declared(declaration), no_registry)[1]
    return message.key, message.value


def test_values_without_a_list_begin_with_those_of_the_key() -> None:
    assert written("INSERT INTO s VALUES ('a', 1, 'x')", STREAM) == (b"a", b'{"N":1,"T":"x"}')
    assert written("INSERT INTO s (n, k) VALUES (1, 'a')", STREAM) == (b"a", b'{"N":1,"T":null}')
    assert written("INSERT INTO s (n) VALUES (1)", STREAM) == (None, b'{"N":1,"T":null}')


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
