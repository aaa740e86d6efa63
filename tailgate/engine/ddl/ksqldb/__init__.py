"""Streams and tables of ksqlDB: the items of its CREATE statements.

A declared stream or table is a source, a derived table a materialized view with a sink (ADR 0011).
"""

from tailgate.engine.ddl.ksqldb.custom_types import create_type, drop_type
from tailgate.engine.ddl.ksqldb.endpoints import Endpoints
from tailgate.engine.ddl.ksqldb.inserted_rows import derived_stream, inserted_row, with_table
from tailgate.engine.ddl.ksqldb.inserts import check_inserts, check_no_queries, inserting_sink, inserting_view
from tailgate.engine.ddl.ksqldb.items import SinkTopic, declared_source, derived_sink, derived_view, topic_of, topic_of_sink
from tailgate.engine.ddl.ksqldb.messages import message_of
from tailgate.engine.ddl.ksqldb.own_topics import check_unused, declared_schemas, subjects_of
from tailgate.engine.ddl.ksqldb.partitions import check_partitions
from tailgate.engine.ddl.ksqldb.push import transient_view
from tailgate.engine.ddl.ksqldb.queries import controlled, explained, paused, query_view, stopped
from tailgate.engine.ddl.ksqldb.upgrades import filled_again, upgraded, upgraded_view, with_columns

__all__ = [
    "Endpoints",
    "SinkTopic",
    "check_inserts",
    "check_no_queries",
    "check_partitions",
    "check_unused",
    "controlled",
    "create_type",
    "declared_schemas",
    "declared_source",
    "derived_sink",
    "derived_stream",
    "derived_view",
    "drop_type",
    "explained",
    "filled_again",
    "inserted_row",
    "inserting_sink",
    "inserting_view",
    "message_of",
    "paused",
    "query_view",
    "stopped",
    "subjects_of",
    "topic_of",
    "topic_of_sink",
    "transient_view",
    "upgraded",
    "upgraded_view",
    "with_columns",
    "with_table",
]
