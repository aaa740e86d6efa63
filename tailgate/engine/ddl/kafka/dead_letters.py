"""Dead letters: DELETE DEAD LETTERS, retention, and an upgrade of the relations of older lakes."""

from __future__ import annotations

import threading
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from tailgate.engine.ddl.durations import DAY_MS, milliseconds
from tailgate.engine.ddl.kafka.known_columns import with_recorded_width
from tailgate.lake.catalog import DEAD_LETTERS, Catalog, Change, DeadLetters, Item, Reader
from tailgate.lake.catalog.roles import Role
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.sql.authorization import authorize
from tailgate.sql.bind import bind_query
from tailgate.sql.plan.properties import relations
from tailgate.sql.statements import Expression, QueryText

AGE, BYTES = "dead_letter_retention_ms", "dead_letter_retention_bytes"  # fields of a source
RETENTION = {"dead letter retention": AGE, "dead letter retention bytes": BYTES}
RETENTION_MS = 7 * DAY_MS
RETENTION_BYTES = 1 << 30  # total size of keys and values
BYTES_MAX = 1 << 40
MEMORY = "512MB"
# limit for evaluating the condition of one DELETE
TIME_S = 60.0


def retention_option(name: str) -> str | None:
    """Returns the field of a source that an option of WITH sets, or None if it is not about dead letters."""
    return RETENTION.get(name.replace("_", " "))


def retention_options(name: str, value: object) -> dict[str, int]:
    """Returns the field of a source that WITH (DEAD LETTER RETENTION [BYTES] = value) sets, and its value. Raises 22023."""
    field = RETENTION[name.replace("_", " ")]
    if field == AGE:
        age = milliseconds(value) if isinstance(value, str) else 0
        if age <= 0:
            raise InvalidParameterValue(f'invalid DEAD LETTER RETENTION: "{value}"', hint="Write an interval, such as '7 days'.")
        return {field: age}
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= BYTES_MAX:
        raise InvalidParameterValue(f'option "{name}" is a number from 1 to {BYTES_MAX}')
    return {field: value}


def matching_letters(table: pa.Table, letters: Item, where: Expression | None, role: Role, catalog: Catalog) -> pa.Table:
    """Returns the rows of a relation of dead letters for which a condition is true.

    Raises 42501 unless the role may evaluate the condition, and 0A000 if it reads another relation.
    """
    if where is None:
        return table
    import duckdb  # only here: it takes 0.2 s of CPU of an engine's start

    from tailgate.sql.render.duckdb import render
    from tailgate.sql.render.duckdb_functions import error_of, install

    name = catalog.stored.name_of(letters)
    relation = exp.Table(this=exp.Identifier(this=name.name, quoted=True))
    if name.schema:
        relation.set("db", exp.Identifier(this=name.schema, quoted=True))
    query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=relation), where=exp.Where(this=where.tree))
    plan = authorize(bind_query(QueryText(where.text, 0, query), catalog.stored, None), role, catalog).plan.plan
    if set(relations(plan)) != {letters.id}:
        raise FeatureNotSupported("a condition of DELETE DEAD LETTERS that reads another relation is not supported")
    connection = duckdb.connect(":memory:", config={"memory_limit": MEMORY, "threads": 1})
    timer = threading.Timer(TIME_S, connection.interrupt)
    timer.start()
    try:
        install(connection)
        connection.execute("SET enable_external_access = false")
        names = [f"c{i}" for i in range(table.num_columns - 1)]
        connection.register(f"r{letters.id}", table.drop_columns([table.column_names[-1]]).rename_columns(names))
        rows = connection.execute(render(plan)).to_arrow_table()
    except duckdb.Error as error:
        raise error_of(error) from error
    finally:
        timer.cancel()
        connection.close()
    return rows.rename_columns(table.column_names[:-1])


def with_all_columns(catalog: Catalog) -> Change:
    """Returns the change that adds columns of newer versions to relations of dead letters.

    Items that read them keep using the columns that they know.
    """
    put: list[Item] = []
    for item in catalog.items.values():
        if isinstance(item, DeadLetters) and len(item.columns) < len(DEAD_LETTERS):
            put.append(replace(item, columns=DEAD_LETTERS))
            put += [with_recorded_width(r, item) for r in catalog.dependents(item.id) if isinstance(r, Reader)]
    return Change(put=tuple(put))
