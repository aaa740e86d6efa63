"""CREATE INDEX: the index's catalog item.

Source: PostgreSQL 15, src/backend/commands/indexcmds.c DefineIndex().
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.catalog import Catalog, Index, Item, Table, View
from tailgate.lake.catalog.indexes import KEY_TYPES
from tailgate.lake.catalog.names import Name
from tailgate.lake.control import Notice
from tailgate.lake.errors import DuplicateTable, FeatureNotSupported, ObjectNotInPrerequisiteState, UndefinedColumn, WrongObjectType
from tailgate.sql.binder.writes.targets import check_writable
from tailgate.sql.statements import CreateIndex
from tailgate.sql.tables.constraints import check_indexable, check_key_types
from tailgate.sql.tables.names import columns_part, free_name

UNCHECKED = "An index says by which columns rows are looked up. Unique indexes of tables are checked."
UNUSED = "Equal values of this type may be stored in several forms. A condition on the column is a scan."
VIEW = "Create a materialized view: CREATE MATERIALIZED VIEW."


def create_index(statement: CreateIndex, catalog: Catalog) -> tuple[Index | None, list[Notice]]:
    """Returns the index, or None if IF NOT EXISTS skips it, and notices."""
    relation = _relation(statement.relation, catalog)
    schema = catalog.schema_of(relation)  # as in PostgreSQL
    if statement.if_not_exists and statement.name is not None and catalog.at(statement.name.name, schema) is not None:
        return None, [Notice(f'relation "{statement.name.name}" already exists, skipping', sqlstate=DuplicateTable.sqlstate)]
    enforced = statement.unique and isinstance(relation, Table)
    if enforced:
        check_writable(relation)
    columns = _columns(statement, relation, enforced=enforced)
    _check_method(statement)
    if statement.name is not None:
        catalog.check_new(statement.name.name, schema)
    include = tuple(_position(name, relation) for name in statement.include)
    part = "primary" if statement.default else columns_part([relation.columns[i].name for i in columns + include])
    if statement.name is not None:
        name = statement.name.name
    else:
        name = free_name(relation.name, part, "idx", lambda n: catalog.at(n, schema) is not None)
    item = Index(
        catalog.next_id,
        name,
        depends=(relation.id,),
        owner=relation.owner,
        schema=schema.id,
        positions=columns,
        descending=tuple(c.descending for c in statement.columns) or (False,) * len(columns),
        nulls_first=tuple(c.nulls_first for c in statement.columns) or (False,) * len(columns),
        include=include,
        unique=statement.unique,
        method=statement.method,
        enforced=enforced,
        nulls_distinct=statement.nulls_distinct,
    )
    return item, _notices(item, relation)


def _relation(name: Name, catalog: Catalog) -> Item:
    """Returns the relation to index. Raises 42809 for a view, 55000 for one that is not stored."""
    relation = catalog.relation(replace(name, position=None))
    if isinstance(relation, View):
        detail = "This operation is not supported for views."
        raise WrongObjectType(f'cannot create index on relation "{relation.name}"', detail=detail, hint=VIEW)
    if not relation.stored:
        hint = "Make a materialized view of it, or create it with CREATE MATERIALIZED SOURCE."
        raise ObjectNotInPrerequisiteState(f'{relation.kind} "{relation.name}" is not stored, so it has no rows to look up', hint=hint)
    return relation


def _columns(statement: CreateIndex, relation: Item, *, enforced: bool) -> tuple[int, ...]:
    """Returns the positions of the columns; for CREATE DEFAULT INDEX those of the key, or all columns."""
    positions = tuple(_position(c.name, relation) for c in statement.columns)
    if statement.default:
        positions = relation.key or tuple(range(len(relation.columns)))
    if enforced:
        check_key_types((relation.columns[i].type for i in positions), "a unique index on a column")
        return positions
    for position in positions:
        check_indexable(relation.columns[position].type)
    return positions


def _notices(index: Index, relation: Item) -> list[Notice]:
    """Returns notices for what an index does not do."""
    notices = []
    if index.unique and not index.enforced:
        notices.append(Notice(f'index "{index.name}" is not checked: rows with equal values may come', hint=UNCHECKED))
    types = [relation.columns[i].type for i in index.positions]
    if (type := next((t for t in types if t.is_array or t.name not in KEY_TYPES), None)) is not None:
        notices.append(Notice(f'index "{index.name}" is not used by queries, because a column has the type {type}', hint=UNUSED))
    return notices


def _position(name: str, relation: Item) -> int:
    """Returns the position of a column. Raises 42703 if it does not exist."""
    names = [c.name for c in relation.columns]
    if name not in names:
        raise UndefinedColumn(f'column "{name}" does not exist')
    return names.index(name)


def _check_method(statement: CreateIndex) -> None:
    """Raises 0A000 for features that hash indexes lack in PostgreSQL."""
    if statement.method != "hash":
        return
    if statement.unique:
        raise FeatureNotSupported('access method "hash" does not support unique indexes')
    if statement.include:
        raise FeatureNotSupported('access method "hash" does not support included columns')
    if len(statement.columns) > 1:
        raise FeatureNotSupported('access method "hash" does not support multicolumn indexes')
    if any(c.descending for c in statement.columns):
        raise FeatureNotSupported('access method "hash" does not support ASC/DESC options')
