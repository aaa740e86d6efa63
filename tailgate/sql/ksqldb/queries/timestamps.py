"""The property TIMESTAMP: a column of the rows of a derived stream or table, or of INSERT INTO … SELECT, is their ROWTIME."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.catalog.names import quoted
from tailgate.lake.keywords import quoted_text
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.declared.properties import check_timestamp, named_column
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.parser import parse
from tailgate.sql.ksqldb.queries.selections import Translation
from tailgate.sql.ksqldb.statements import CreateAs, CreateItem
from tailgate.sql.ksqldb.typed.values import of_milliseconds

EPOCH = "timestamptz '1970-01-01 00:00:00+00'"


@dataclass(frozen=True, slots=True)
class TimestampColumn:
    """The column of TIMESTAMP; empty for none. `format`: the pattern of TIMESTAMP_FORMAT."""

    name: str
    format: str = ""


def timestamp_of(item: KsqldbItem) -> TimestampColumn:
    """Returns the column with the ROWTIME of a stream that exists."""
    statement = parse(item.statement) if item.statement else None
    properties = dict(statement.properties) if isinstance(statement, CreateItem | CreateAs) else {}
    name = named_column(str(properties["TIMESTAMP"])) if "TIMESTAMP" in properties else ""
    return TimestampColumn(name, str(properties.get("TIMESTAMP_FORMAT", "")))


def moment_of(text: str, type: TypeName | None, format: str) -> str:
    """Returns the timestamp in UTC of a value of a column with the ROWTIME, in PostgreSQL's dialect."""
    if type == types.BIGINT:
        return of_milliseconds(text)
    return text if type == types.TIMESTAMP else f"ksqldb_parse_timestamp({text}, {quoted_text(format)}, 'UTC')"


def timed(translation: Translation, timestamp: TimestampColumn, position: int, *, is_stream: bool = True) -> Translation:
    """Returns a query whose rows have the time of a column. It leaves out rows without one and before 1970.

    Raises 22023 for a column that cannot have the time.
    """
    if not timestamp.name:
        return translation
    type = dict(translation.columns).get(timestamp.name)
    check_timestamp(ksqldb_name(timestamp.name), type, bool(timestamp.format), position)
    moment = moment_of(quoted(timestamp.name), type, timestamp.format)
    columns = [quoted(name) for name, _ in translation.columns]
    others = [name for name in translation.hidden if name != "rowtime" and is_stream]
    time = f"try({moment} AT TIME ZONE 'UTC') AS rowtime"
    times = f"SELECT {', '.join((*columns, time, *others))} FROM ({translation.text}) AS rows"
    listed = ", ".join((*columns, "rowtime", *others))
    return replace(translation, text=f"SELECT {listed} FROM ({times}) AS timed WHERE rowtime >= {EPOCH}")
