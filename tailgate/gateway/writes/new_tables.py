"""The table that CREATE TABLE … AS makes: the plan of its rows, and the CREATE TABLE statement with its columns.

Source: PostgreSQL 15, src/backend/commands/createas.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tailgate.gateway.serving.prepared import declared
from tailgate.gateway.writes.plans import WithPlan, parameter_types, with_plan
from tailgate.gateway.writes.rows.query import Query, numbered
from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.names import Name, quoted
from tailgate.lake.errors import DuplicateColumn, FeatureNotSupported, InvalidTableDefinition, SyntaxError_
from tailgate.lake.types import TEXT, Field, Type
from tailgate.sql.authorization import Demand
from tailgate.sql.bind import bind_query
from tailgate.sql.binder.types.overloads import numeric_as
from tailgate.sql.binder.writes.modifying_with import ModifyingWith
from tailgate.sql.new_items import stored_type
from tailgate.sql.numeric_types import WITH_GENERAL
from tailgate.sql.plan import Column, Project, Relation
from tailgate.sql.plan.writes import INCOMING
from tailgate.sql.statements import CreateTableAs, QueryText, WithWrites
from tailgate.sql.tables.definition import type_name
from tailgate.sql.time_zones import in_zone


@dataclass(frozen=True, slots=True)
class NewTable:
    """A bound CREATE TABLE … AS. `columns`: those of the table. `rows`: the query, rendered for DuckDB, or the plan of one that writes."""

    columns: tuple[Field, ...]
    rows: Query | WithPlan
    parameters: tuple[Type, ...]
    demands: tuple[Demand, ...]

    @property
    def size(self) -> int:
        return self.rows.size

    @property
    def relations(self) -> tuple[int, ...]:
        """Returns the relations that the query reads; none for one that writes, whose effect has them."""
        if isinstance(self.rows, WithPlan):
            return ()
        return tuple(sorted({relation for relation in self.rows.scans if relation != INCOMING}))

    def definition(self, name: Name, options: str) -> str:
        """Returns the CREATE TABLE statement. `options`: its WITH clause, or ''."""
        columns = ", ".join(f"{quoted(c.name)} {type_name(c.type)}" for c in self.columns)
        return f"CREATE TABLE {name.sql} ({columns}) {options}".rstrip()


def bound(statement: CreateTableAs, oids: Sequence[int], catalog: Catalog) -> NewTable:
    """Binds the query and names the columns. Raises 42601, 42701, 42P16 and the errors of the query."""
    with in_zone(catalog.time_zone):
        return _planned(statement, declared(oids, catalog), catalog)


def _planned(statement: CreateTableAs, types: tuple[Type, ...], catalog: Catalog) -> NewTable:
    if isinstance(statement.query, WithWrites):
        write = ModifyingWith(catalog, types).with_writes(statement.query)
        assert isinstance(write.body, Relation)
        columns = _columns(statement, write.body)
        plan = with_plan(replace(write, body=_stored(write.body, columns)), compact=False)
        return NewTable(columns, plan, plan.parameters, write.demands)
    assert isinstance(statement.query, QueryText)
    query = bind_query(statement.query, catalog, types, numeric_rules=WITH_GENERAL)
    columns = _columns(statement, query.plan)
    rows = numbered(_stored(query.plan, columns), len(query.parameters), compact=False)
    return NewTable(columns, rows, parameter_types(query.parameters), query.demands)


def _columns(statement: CreateTableAs, rows: Relation) -> tuple[Field, ...]:
    """Returns the columns of the table. Raises 42601, 42701, 42P16."""
    if len(statement.columns) > len(rows.columns):
        raise SyntaxError_("too many column names were specified")
    names = [*statement.columns, *(c.name for c in rows.columns[len(statement.columns) :])]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise DuplicateColumn(f'column "{name}" specified more than once')
    return tuple(Field(name, _stored_type(name, c.type)) for name, c in zip(names, rows.columns, strict=True))


def _stored(rows: Relation, columns: tuple[Field, ...]) -> Relation:
    """Returns the rows with the numerics of the table's columns."""
    if not any(c.type.name == "numeric" for c in columns):
        return rows
    scalars = [Column(i, c.type) for i, c in enumerate(rows.columns)]
    values = [numeric_as(s, c.type) if c.type.name == "numeric" else s for s, c in zip(scalars, columns, strict=True)]
    return Project(rows, tuple(values), columns)


def _stored_type(column: str, type: Type) -> Type:
    """Returns the type of a table's column for a column of the query. Raises 42P16 for a row."""
    match type.name:
        case "unknown":
            return replace(TEXT, is_array=type.is_array, multidimensional=type.multidimensional)
        case "record" if type.composite is None:
            raise InvalidTableDefinition(f'column "{column}" has pseudo-type {type}')
        case "regclass" | "regtype":
            raise FeatureNotSupported(f'column "{column}" of type {type} is not supported', hint="Cast it to text.")
    return stored_type(type)
