"""INSERT and CREATE TABLE … AS belong to ksqlDB if they name its streams or tables."""

from __future__ import annotations

import pytest

from tailgate.gateway.ksqldb.targets import in_dialect
from tailgate.gateway.session.statements.parsing import LONG_CHARACTERS, read_in_worker
from tailgate.lake.catalog import Catalog, Change, Source, Table
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.types import INT4, Field
from tailgate.sql.ksqldb.dialect import Dialect
from tailgate.sql.statements import parse

STREAM = KsqldbItem(type="stream", statement="", topic="t", key_format="KAFKA", value_format="JSON")
CATALOG = Catalog().apply(
    Change(
        put=(
            Source(1000, "s", (Field("a", INT4),), ksqldb=STREAM),
            Source(1001, "plain", (Field("a", INT4),)),
            Table(1002, "t", (Field("a", INT4),), stored=True),
        )
    )
)


@pytest.mark.parametrize(
    ("text", "dialect", "kind"),
    [
        ("INSERT INTO s (a) VALUES (1)", "auto", "InsertMessage"),
        ("INSERT INTO S VALUES (1)", "auto", "InsertMessage"),
        ("INSERT INTO s VALUES (1)", "postgresql", "Insert"),
        ("INSERT INTO t VALUES (1)", "auto", "Insert"),
        ("INSERT INTO nothing VALUES (1)", "auto", "Insert"),
        ("CREATE TABLE x AS SELECT a, count(*) AS n FROM s GROUP BY a", "auto", "CreateKsqldbItem"),
        ("INSERT INTO s SELECT * FROM s", "auto", "InsertStream"),
        ("INSERT INTO s WITH (query_id = 'q') SELECT * FROM s", "auto", "InsertStream"),
        ("CREATE TABLE x AS SELECT a, count(*) AS n FROM s GROUP BY a", "postgresql", "CreateTableAs"),
        ("CREATE TABLE x AS SELECT a, count(*) AS n FROM plain GROUP BY a", "auto", "CreateTableAs"),
        ("ALTER TABLE s ADD COLUMN b INT", "auto", "AlterKsqldbItem"),
        ("ALTER TABLE t ADD COLUMN b INT", "auto", "AlterTable"),
        ("ALTER TABLE s OWNER TO r", "auto", "AlterItem"),
        ("SELECT * FROM s", "auto", "Select"),
    ],
)
def test_the_dialect_follows_from_the_relations(text: str, dialect: Dialect, kind: str) -> None:
    assert type(in_dialect(parse(text, dialect), text, CATALOG, dialect)).__name__ == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("INSERT INTO s (a) VALUES ({})", "InsertMessage"),
        ("INSERT INTO s SELECT {} AS a FROM s", "InsertStream"),
        ("INSERT INTO t VALUES ({})", "LongWrite"),
        ("UPDATE t SET a = {}", "LongWrite"),
    ],
)
def test_the_dialect_of_a_long_text_follows_from_the_relations(text: str, kind: str) -> None:
    text = text.format(f"'{'x' * LONG_CHARACTERS}'")
    ((statement, _),) = read_in_worker(text)
    assert type(in_dialect(statement, text, CATALOG, "auto")).__name__ == kind
