"""Properties that switch off features: each refuses the statements that use its feature, and no others."""

from __future__ import annotations

import pytest

from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.ksqldb.declared.refusals import IGNORED, OBEYED
from tailgate.sql.ksqldb.declared.switches import PROPERTIES, SWITCHES, Statement, check
from tailgate.sql.ksqldb.parser import parse

DECLARED = "CREATE STREAM s (i INT) WITH (kafka_topic = 's', format = 'json')"
OF = {
    "ksql.headers.columns.enabled": "CREATE STREAM s (i INT, h BYTES HEADER('h')) WITH (kafka_topic = 's', format = 'json')",
    "ksql.create.or.replace.enabled": "CREATE OR REPLACE STREAM s AS SELECT i FROM t",
    "ksql.insert.into.values.enabled": "INSERT INTO s VALUES (1)",
    "ksql.lambdas.enabled": "CREATE STREAM s AS SELECT TRANSFORM(a, x => x + 1) FROM t",
    "ksql.suppress.enabled": "CREATE TABLE s AS SELECT i, COUNT(*) FROM t WINDOW TUMBLING (SIZE 1 DAY) GROUP BY i EMIT FINAL",
    "ksql.source.table.materialization.enabled": "CREATE SOURCE TABLE s (i INT PRIMARY KEY, v INT) WITH (kafka_topic = 's')",
    "ksql.pull.queries.enable": "SELECT i FROM s",
    "ksql.query.pull.limit.clause.enabled": "SELECT i FROM s LIMIT 3",
    "ksql.rowpartition.rowoffset.enabled": "SELECT rowoffset FROM s EMIT CHANGES",
}
OTHERS = (DECLARED, "CREATE STREAM s AS SELECT i FROM t", "SELECT i FROM s EMIT CHANGES LIMIT 1", "INSERT INTO s SELECT i FROM t")


def parsed(text: str) -> Statement:
    statement = parse(text)
    assert isinstance(statement, Statement)
    return statement


@pytest.mark.parametrize("property", [switch.property for switch in SWITCHES])
def test_a_property_refuses_the_statements_of_its_feature(property: str) -> None:
    with pytest.raises(FeatureNotSupported, match=r"disabled|not enabled"):
        check(parsed(OF[property]), {property}.__contains__)
    check(parsed(OF[property]), (set(PROPERTIES) - {property, "ksql.pull.queries.enable"}).__contains__)
    for text in OTHERS:
        check(parsed(text), set(PROPERTIES).__contains__)


def test_properties_have_one_effect() -> None:
    assert not OBEYED.keys() & IGNORED
    assert set(PROPERTIES) <= OBEYED.keys()
