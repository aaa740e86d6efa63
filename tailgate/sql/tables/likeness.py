"""CREATE TABLE (LIKE relation …): the columns, constraints, indexes and comments that the new table copies.

Source: PostgreSQL 15, src/backend/parser/parse_utilcmd.c (transformTableLikeClause, expandTableLikeClause, generateClonedIndexStmt).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tailgate.lake import constraints
from tailgate.lake.catalog import Catalog, Index, Item, Sequence, Table
from tailgate.lake.catalog.formats import IndexExpression
from tailgate.lake.catalog.indexes import indexes, names
from tailgate.lake.catalog.item_fields import ColumnStorage
from tailgate.lake.errors import InvalidTableDefinition, WrongObjectType
from tailgate.lake.types import Type
from tailgate.sql.statements.definitions import SequenceOptions
from tailgate.sql.statements.tables import Check, CreateTable, Like, TableColumn, Unique
from tailgate.sql.tables.names import columns_part, free_name


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies that are not part of a statement: indexes without a constraint, and of columns the comments and the storage.

    Positions of columns are those in the new table.
    """

    indexes: tuple[Index, ...] = ()
    comments: Mapping[str, str] = field(default_factory=dict)
    storage: Mapping[int, ColumnStorage] = field(default_factory=dict)


def with_copies(statement: CreateTable, catalog: Catalog) -> tuple[CreateTable, Copies]:
    """Returns the statement with the columns and constraints in place of its LIKE clauses, and other copies. Raises 42P01, 42809, 42P16."""
    moved, copied, comments, storage = 0, list[Index](), dict[str, str](), dict[int, ColumnStorage]()
    for like in statement.likes:
        relation = catalog.relation(like.relation)
        if not relation.is_relation:
            raise WrongObjectType(f'relation "{relation.name}" is invalid in LIKE clause')
        place = like.place + moved
        numbers = {i: place + n for n, i in enumerate(i for i, c in enumerate(relation.columns) if not c.is_dropped)}
        columns = tuple(_column(relation, i, like, catalog) for i in numbers)
        moved += len(columns)
        statement = replace(statement, columns=(*statement.columns[:place], *columns, *statement.columns[place:]))
        if "constraints" in like.including and isinstance(relation, Table):
            checks = tuple(Check(check.name, check.text, 0) for check in relation.checks)
            statement = replace(statement, checks=(*statement.checks, *checks))
        storage |= {number: _storage(relation, i, like) for i, number in numbers.items()}
        if "comments" in like.including:
            comments |= {name: text for name, text in relation.comments.items() if name}
        if "indexes" in like.including and isinstance(relation, Table):
            statement = _with_keys(statement, relation, catalog)
            others = [index for index in indexes(catalog, relation.id) if not index.constraint]
            copied += [_moved(index, numbers) for index in others]
    return statement, Copies(tuple(copied), comments, {number: of for number, of in storage.items() if of != ColumnStorage()})


def _storage(relation: Item, position: int, like: Like) -> ColumnStorage:
    """Returns the storage that a column copies of another one."""
    of = relation.storage.of(position)
    storage, compression = (word in like.including for word in ("storage", "compression"))
    return ColumnStorage(storage=of.storage if storage else "", compression=of.compression if compression else "")


def _column(relation: Item, position: int, like: Like, catalog: Catalog) -> TableColumn:
    """Returns the declaration of a column."""
    column = relation.columns[position]
    nullable = column.nullable or not isinstance(relation, Table)
    collation = relation.storage.of(position).collation
    copy = TableColumn(column.name, column.type, nullable, domain=column.domain, collation=collation)
    if not isinstance(relation, Table):
        return copy
    expression = relation.generated.get(column.name)
    if expression is not None:
        return replace(copy, expression=expression) if "generated" in like.including else copy
    identity = relation.identity.get(column.name)
    if identity is not None:
        return replace(copy, generated=identity, options=_options(relation, column.name, catalog)) if "identity" in like.including else copy
    return replace(copy, default=relation.defaults.get(column.name)) if "defaults" in like.including else copy


def _options(table: Table, column: str, catalog: Catalog) -> SequenceOptions:
    """Returns the options of the sequence of an identity column."""
    own = next(s for s in catalog.each(Sequence) if s.depends == (table.id,) and s.column == column)
    return SequenceOptions(Type(own.type), own.increment, own.minimum, own.maximum, own.start, own.cache, own.cycle)


def _with_keys(statement: CreateTable, table: Table, catalog: Catalog) -> CreateTable:
    """Returns the statement with the primary key and the unique constraints of a table. Raises 42P16 for a second primary key."""
    for key in constraints.keys_of(table, catalog):
        if not key.constraint:
            continue
        names = tuple(table.columns[i].name for i in key.columns)
        if key.primary and (statement.key or any(unique.primary for unique in statement.uniques)):
            raise InvalidTableDefinition(f'multiple primary keys for table "{statement.name.name}" are not allowed')
        if key.primary and not key.deferrable:
            statement = replace(statement, key=names)
        else:
            unique = Unique(None, names, 0, key.primary, key.nulls_distinct, key.deferrable, key.deferred)
            statement = replace(statement, uniques=(*statement.uniques, unique))
    return statement


def _moved(index: Index, numbers: Mapping[int, int]) -> Index:
    """Returns the index with the positions of its columns in the new table."""

    def placed(expression: IndexExpression) -> IndexExpression:
        return replace(expression, columns=tuple(numbers[i] for i in expression.columns))

    return replace(
        index,
        positions=tuple(numbers[i] for i in index.positions),
        include=tuple(numbers[i] for i in index.include),
        expressions=tuple(map(placed, index.expressions)),
        condition=None if index.condition is None else placed(index.condition),
        comments={},
    )


def copied_index(index: Index, table: Table, catalog: Catalog) -> Index:
    """Returns the copy of an index for a new table in the catalog. `index`: with the positions of the columns in that table."""
    schema = catalog.schema_of(table)
    part = columns_part([*names(index, table), *(table.columns[i].name for i in index.include)])
    name = free_name(table.name, part, "idx", lambda n: catalog.at(n, schema) is not None)
    return replace(index, id=catalog.next_id, name=name, depends=(table.id,), owner=table.owner, schema=table.schema)
