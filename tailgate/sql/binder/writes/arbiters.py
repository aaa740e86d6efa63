"""The key that ON CONFLICT names, or infers from columns, expressions and a condition.

Source: PostgreSQL 15, src/backend/optimizer/util/plancat.c (infer_arbiter_indexes), src/backend/parser/parse_clause.c
(transformOnConflictArbiter).
"""

from __future__ import annotations

from collections.abc import Sequence

from tailgate.lake.catalog import Catalog, Table
from tailgate.lake.constraints import Key, key_expressions, keys_of
from tailgate.lake.errors import InvalidColumnReference, ObjectNotInPrerequisiteState, SyntaxError_, UndefinedColumn, UndefinedObject
from tailgate.sql.binder.writes.index_expressions import stored_value, value_of
from tailgate.sql.plan.rewriting import columns_of, conjuncts
from tailgate.sql.statements.writes import OnConflict


def arbiter_of(table: Table, clause: OnConflict, catalog: Catalog) -> Key | None:
    """Returns the key that ON CONFLICT infers or names; None for DO NOTHING on all keys. Raises 42704, 42601, 42703, 42P10, 55000."""
    keys = keys_of(table, catalog)
    if clause.constraint is not None:
        match = next((key for key in keys if key.constraint and key.name == clause.constraint), None)
        if match is None:
            raise UndefinedObject(f'constraint "{clause.constraint}" for table "{table.name}" does not exist')
        return checked_immediate(match, table, catalog)
    if not clause.columns:
        if clause.update is not None:
            raise SyntaxError_(
                "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                hint="For example, ON CONFLICT (column_name).",
                position=clause.position,
            )
        return None
    match = _inferred(table, clause, keys, catalog)
    if match is None:
        raise InvalidColumnReference("there is no unique or exclusion constraint matching the ON CONFLICT specification")
    return checked_immediate(match, table, catalog)


def columns_of_arbiter(table: Table, clause: OnConflict, arbiter: Key) -> frozenset[int]:
    """Returns the positions of the columns that ON CONFLICT reads to find rows with equal keys."""
    if clause.condition is None:
        return arbiter.read
    return arbiter.read | columns_of(value_of(table, clause.condition.tree, condition=True))


def _inferred(table: Table, clause: OnConflict, keys: Sequence[Key], catalog: Catalog) -> Key | None:
    """Returns the first key that fits the clause, or None. A condition implies that of an index if it contains all parts of it."""
    names, width = [c.name for c in table.columns], len(table.columns)
    for column in clause.columns:
        if column.expression is None and column.name not in names:
            raise UndefinedColumn(f'column "{column.name}" does not exist', position=column.position)
    columns = {names.index(c.name) for c in clause.columns if c.expression is None}
    expressions = {value_of(table, c.expression.tree) for c in clause.columns if c.expression is not None}
    condition = None if clause.condition is None else value_of(table, clause.condition.tree, condition=True)
    implied, stored = {*conjuncts(condition)}, [stored_value(table, expression) for expression in key_expressions(table, catalog)]
    for key in keys:
        required = {*conjuncts(None if key.condition is None else stored[key.condition - width])}
        computed = {stored[column - width] for column in key.columns if column >= width}
        if {c for c in key.columns if c < width} == columns and computed == expressions and required <= implied:
            return key
    return None


def checked_immediate(key: Key, table: Table, catalog: Catalog) -> Key:
    """Returns the key. Raises 55000 for a deferrable one."""
    if key.deferrable:
        raise ObjectNotInPrerequisiteState(
            "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters",
            names={"s": catalog.schema_of(table).name, "t": table.name, "n": key.name},
        )
    return key
