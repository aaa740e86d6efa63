"""The property TIMESTAMP of a derived stream: a column of its rows is their ROWTIME."""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.catalog.names import quoted
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.declared.properties import TopicProperties, check_timestamp
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.pseudo_columns import PSEUDO_COLUMNS
from tailgate.sql.ksqldb.queries.selections import Translation
from tailgate.sql.ksqldb.typed.values import literal, of_milliseconds

EPOCH = "timestamptz '1970-01-01 00:00:00+00'"


def timed(translation: Translation, topic: TopicProperties, position: int) -> Translation:
    """Returns a query whose rows have the time of the column of TIMESTAMP. It leaves out rows without one and before 1970.

    Raises 22023 for a column that cannot have the time.
    """
    type = dict(translation.columns).get(topic.timestamp)
    check_timestamp(ksqldb_name(topic.timestamp), type, bool(topic.timestamp_format), position)
    column = quoted(topic.timestamp)
    if type == types.BIGINT:
        moment = of_milliseconds(column)
    elif type == types.TIMESTAMP:
        moment = column
    else:
        moment = f"ksqldb_parse_timestamp({column}, {literal(topic.timestamp_format)}, 'UTC')"
    time = f"try({moment} AT TIME ZONE 'UTC')"
    columns = ", ".join(quoted(name) for name, _ in translation.columns)
    others = ", ".join(name for name in PSEUDO_COLUMNS if name != "rowtime")
    text = f"SELECT {columns}, {time} AS rowtime, {others} FROM ({translation.text}) AS timed WHERE {time} >= {EPOCH}"
    return replace(translation, text=text)
