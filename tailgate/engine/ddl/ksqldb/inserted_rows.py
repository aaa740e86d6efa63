"""INSERT INTO … VALUES into a derived stream: the table with its rows, which the query of the stream reads, too.

The rows enter the circuit as those of a table do. They reach the queries above the stream in one tick, and Kafka through the sink of
the stream. ROWPARTITION is 0, ROWOFFSET the time of the statement in ns, and the place in the order of all records that time, too: rows
have the order of their statements.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from tailgate.engine.ddl.ksqldb.inserts import check_insertable
from tailgate.engine.ddl.ksqldb.messages import Evaluate, values_of
from tailgate.engine.ddl.table import create_table
from tailgate.engine.ddl.view import check_maintained
from tailgate.engine.plan.sources.row_columns import digits
from tailgate.engine.plan.views.inserts import with_rows_of
from tailgate.lake.catalog import Catalog, Change, MaterializedView, ksqldb_of
from tailgate.lake.catalog.dropping import inserted_rows
from tailgate.lake.catalog.names import Name, quoted
from tailgate.lake.errors import InvalidParameterValue, WrongObjectType
from tailgate.lake.keywords import quoted_text
from tailgate.lake.types import WEIGHT, arrow_schema
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.declared.inserts import ROWTIME_MAX
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.pseudo_columns import ARRIVAL, ROW_NUMBER
from tailgate.sql.ksqldb.queries.scopes import column_types
from tailgate.sql.ksqldb.queries.timestamps import moment_of, timestamp_of
from tailgate.sql.ksqldb.statements import InsertValues
from tailgate.sql.ksqldb.typed.values import milliseconds
from tailgate.sql.statements import CreateTable, parse
from tailgate.sql.tables.names import free_name
from tailgate.values.strings import jsonb


def derived_stream(statement: InsertValues, catalog: Catalog) -> MaterializedView | None:
    """Returns the derived stream that a statement inserts into, or None for another relation. Raises 42809 for a derived table."""
    item = catalog.find(Name(statement.name))
    ksqldb = ksqldb_of(item)
    if ksqldb is None or not isinstance(item, MaterializedView):
        return None
    if ksqldb.type == "table":
        raise WrongObjectType(f"Cannot insert into read-only table: {ksqldb_name(item.name)}", position=statement.position)
    return item


def with_table(stream: MaterializedView, catalog: Catalog, position: int) -> Change:
    """Returns the change that lets a stream read the table of its inserted rows; an empty one if it does.

    Raises 55000 if the stream is not kept up to date, and 0A000 below a join of streams.
    """
    if inserted_rows(stream, catalog) is not None:
        check_maintained(stream)
        return Change()
    check_insertable(stream, catalog, position)
    schema = catalog.schema_of(stream).name
    name = Name(free_name(stream.name, "", "inserted", lambda name: catalog.find(Name(name, schema)) is not None), schema)
    text = f"CREATE TABLE {name.sql} ({', '.join(f'{quoted(c.name)} {c.type}' for c in stream.columns)})"
    creation = parse(text, "postgresql")
    assert isinstance(creation, CreateTable)
    table = replace(create_table(creation, text, catalog)[0], owner=stream.owner, of_stream=stream.id)
    return Change(put=(table, with_rows_of(table, stream, catalog.apply(Change(put=(table,))))))


def inserted_row(statement: InsertValues, stream: MaterializedView, now: int, evaluate: Evaluate) -> pa.Table:
    """Returns the row of a statement, weighted. `now`: the time in ns. Raises 22023 for a row without a ROWTIME."""
    ksqldb = ksqldb_of(stream)
    assert ksqldb is not None
    row = values_of(statement, stream, ksqldb, evaluate)
    values = dict(row.values)
    timestamp, moment = timestamp_of(ksqldb), row.timestamp
    if timestamp.name:
        type = column_types(stream)[timestamp.name]
        text = moment_of(_text(values[timestamp.name], type), type, timestamp.format)
        moment = evaluate(f"try({milliseconds(text)})")
        if moment is None or not 0 <= moment <= ROWTIME_MAX:
            raise InvalidParameterValue(f"column {ksqldb_name(timestamp.name)} has no ROWTIME", position=statement.position)
    milliseconds_now = now // 1_000_000
    micros = 1000 * (milliseconds_now if moment is None else moment)
    arrival = 2 * digits(milliseconds_now)
    values |= {"rowtime": micros, "rowpartition": 0, "rowoffset": now, ROW_NUMBER: "", ARRIVAL: arrival, WEIGHT: 1}
    schema = arrow_schema(stream.columns, weight=True)
    of_jsonb = {c.name for c in stream.columns if c.type.name == "jsonb"}
    columns = {f.name: jsonb.canonical(v) if f.name in of_jsonb and (v := values[f.name]) is not None else values[f.name] for f in schema}
    return pa.table({name: [value] for name, value in columns.items()}, schema)


def _text(value: Any, type: TypeName) -> str:
    """Returns the value of a column with a time in PostgreSQL's dialect."""
    return f"CAST({'NULL' if value is None else quoted_text(str(value))} AS {types.postgresql(type)})"
