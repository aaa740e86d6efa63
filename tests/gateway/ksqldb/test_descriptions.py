"""DESCRIBE … EXTENDED: ksqlDB's text, and its measured figures."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from tailgate.gateway.ksqldb import entities
from tailgate.gateway.ksqldb.entities import descriptions
from tailgate.gateway.ksqldb.figures import Measured
from tailgate.ksql.entities import entity
from tailgate.lake.catalog import Catalog, Change
from tailgate.sql.statements import Name, Show, parse
from tests.engine.ddl.ksqldb_items import AVERAGES, READINGS, declared, derived

TEXT = """\
Name                 : AVG_READINGS
Type                 : TABLE
Timestamp field      : Not set - using <ROWTIME>
Key format           : KAFKA
Value format         : JSON
Kafka topic          : AVG_READINGS (partitions: 3, replication: 2)
Statement            : CREATE TABLE avg_readings AS SELECT sensor, AVG(reading) AS avg FROM readings GROUP BY sensor EMIT CHANGES;

 Field  | Type                           
-----------------------------------------
 SENSOR | VARCHAR(STRING)  (primary key) 
 AVG    | DOUBLE                         
-----------------------------------------

Queries that write from this TABLE
-----------------------------------
CTAS_AVG_READINGS_0 (RUNNING) : CREATE TABLE avg_readings AS SELECT sensor, AVG(reading) AS avg FROM readings GROUP BY sensor EMIT CHANGES;

For query topology and execution plan please run: EXPLAIN <QueryId>

Local runtime statistics
------------------------
messages-per-sec:      4.41   total-messages:       486     last-message: 2022-03-18T14:33:53.989Z
  failed-messages:         0      last-failed:       n/a
(Statistics of the local KSQL server interaction with the Kafka topic AVG_READINGS)"""  # noqa: W291


def described(what: str, name: str | None, status: dict[str, Any], failed: dict[int, datetime]) -> str:
    _, _, catalog = derived(AVERAGES, declared(READINGS))
    measured = Measured(catalog, status, ["AVG_READINGS\t3\t2\t486", "r\t1\t1\t5"], failed)
    return entity(descriptions(Show(what, None if name is None else Name(name)), catalog, measured, lambda item: True))


def test_a_derived_table_has_the_figures_of_its_sink() -> None:
    sink = {"per_second": 4.41, "records": 486, "last_message": 1647614033989}
    assert described("describe extended", "avg_readings", {"sinks": {"avg_readings_topic": sink}}, {}) == TEXT


OFFSETS = """

Consumer Groups summary:

Consumer Group       : _confluent-ksql-default_query_CTAS_AVG_READINGS_0

Kafka topic          : r
Max lag              : 2

 Partition | Start Offset | End Offset | Offset | Lag
------------------------------------------------------
 0         | 1            | 7          | 5      | 2
 10        | 0            | 3          | 4      | 0
------------------------------------------------------"""


def test_a_derived_table_has_the_offsets_of_the_topic_that_its_query_reads() -> None:
    sources = {"readings": {"offsets": {"10": [0, 3, 4], "0": [1, 7, 5]}}}
    assert described("describe extended", "avg_readings", {"sources": sources}, {}).endswith(OFFSETS)


def test_a_query_has_read_all_messages_of_a_derived_stream() -> None:
    _, _, catalog = derived("CREATE STREAM high AS SELECT * FROM readings WHERE reading > 1 EMIT CHANGES", declared(READINGS))
    counts, _, catalog = derived("CREATE TABLE counts AS SELECT sensor, COUNT(*) AS n FROM high GROUP BY sensor EMIT CHANGES", catalog)
    status = {"sinks": {"high_topic": {"offsets": {"0": [1, 7, 7]}}}, "sources": {"readings": {"offsets": {"0": [0, 9, 9]}}}}
    (group,) = Measured(catalog, status, [], {}).of(counts).offsets
    offsets = [{"partition": 0, "logStartOffset": 1, "logEndOffset": 7, "consumerOffset": 7}]
    assert group["topicSummaries"] == [{"kafkaTopic": "HIGH", "offsets": offsets}]


WINDOW = "WINDOW HOPPING (SIZE 4 SECONDS, ADVANCE BY 1 SECOND)"
WINDOWED = f"CREATE TABLE counts AS SELECT sensor, COUNT(*) AS n FROM readings {WINDOW} GROUP BY sensor EMIT CHANGES"


def test_the_kind_of_windows() -> None:
    _, _, catalog = derived(WINDOWED, declared(READINGS))
    catalog = declared(f"{READINGS[:-1]}, window_type = 'session')".replace("readings", "sessions"), catalog)
    _, _, catalog = derived("CREATE TABLE many AS SELECT * FROM counts WHERE n > 1 EMIT CHANGES", catalog)
    shows = {name: Show("describe", Name(name)) for name in ("readings", "counts", "sessions", "many")}
    kinds = {name: descriptions(show, catalog, None, lambda item: True)["sourceDescription"]["windowType"] for name, show in shows.items()}
    assert kinds == {"readings": None, "counts": "HOPPING", "sessions": "SESSION", "many": "HOPPING"}
    text = entity(descriptions(shows["counts"], catalog, None, lambda item: True))
    assert " SENSOR | VARCHAR(STRING)  (primary key) (Window type: HOPPING)\n" in text


def test_the_kind_of_windows_after_other_names() -> None:
    counts, _, catalog = derived(WINDOWED, declared(READINGS))
    many, _, catalog = derived("CREATE TABLE many AS SELECT * FROM counts WHERE n > 1 EMIT CHANGES", catalog)
    catalog = catalog.apply(Change(put=(replace(counts, name="others"), replace(many, name="counts"))))
    answer = descriptions(Show("describe", Name("counts")), catalog, None, lambda item: True)
    assert answer["sourceDescription"]["windowType"] == "HOPPING"


def test_a_declared_stream_has_the_figures_of_its_source() -> None:
    source = {"per_second": 1.0, "records": 5, "bytes": 100, "dead_letters": 2, "last_message": 0}
    id = declared(READINGS).relation("readings").id
    text = described("describe extended", "readings", {"sources": {"readings": source}}, {id: datetime(2022, 1, 2, tzinfo=timezone.utc)})
    assert "Queries that read from this STREAM" in text
    assert "consumer-total-messages:         5 consumer-total-message-bytes:       100     last-message:       n/a" in text
    assert "consumer-failed-messages:         2      last-failed: 2022-01-02T00:00:00.000Z" in text


def test_all_streams_or_tables() -> None:
    text = described("describe streams extended", None, {}, {})
    assert "Name                 : READINGS" in text
    assert "AVG_READINGS (" not in text


def test_internal_topics_are_listed_with_all_only() -> None:
    names = ["_schemas", "_tailgate-progress-7", "connect-status", "readings", "connect-status-2"]
    for extended in ("", " EXTENDED"):

        def listed(text: str, suffix: str = extended) -> list[str]:
            show = parse(text + suffix, "ksqldb")
            assert isinstance(show, Show)
            found = entities.entity(show, Catalog(), [f"{name}\t2\t1\t0\t0" for name in names], lambda item: True)
            return [topic["name"] for topic in found["topics"]]

        assert listed("SHOW TOPICS") == ["readings", "connect-status-2"]
        assert listed("LIST ALL TOPICS") == names


def test_spellings() -> None:
    name = Name("readings")
    assert parse("DESCRIBE EXTENDED readings") == parse("DESCRIBE readings EXTENDED") == Show("describe extended", name)
    assert parse("LIST TABLES EXTENDED") == parse("DESCRIBE TABLES EXTENDED") == Show("describe tables extended")
    assert parse("DESCRIBE STREAMS") == Show("describe streams")


def test_the_column_with_the_time_of_a_stream() -> None:
    catalog = declared("CREATE STREAM s (k INT KEY, `at` BIGINT) WITH (kafka_topic = 's', value_format = 'json', timestamp = '`at`')")
    _, _, catalog = derived("CREATE STREAM d WITH (timestamp = 'later') AS SELECT k, `at` + 1 AS later FROM s EMIT CHANGES", catalog)
    names = {
        n: descriptions(Show("describe", Name(n)), catalog, None, lambda item: True)["sourceDescription"]["timestamp"] for n in ("s", "d")
    }
    assert names == {"s": "at", "d": "LATER"}
