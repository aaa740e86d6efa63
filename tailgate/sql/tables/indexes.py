"""CREATE INDEX: the index's catalog item.

Source: PostgreSQL 15, src/backend/commands/indexcmds.c DefineIndex().
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from sqlglot import exp

from tailgate.lake.catalog import Catalog, Index, Item, Table, View
from tailgate.lake.catalog.formats import IndexExpression
from tailgate.lake.catalog.indexes import KEY_TYPES, names
from tailgate.lake.catalog.item_fields import ColumnStorage, Storage
from tailgate.lake.catalog.names import Name
from tailgate.lake.control import Notice
from tailgate.lake.errors import (
    DuplicateTable,
    ObjectNotInPrerequisiteState,
    UndefinedColumn,
    WrongObjectType,
)
from tailgate.sql.binder.writes.index_expressions import defined, field_of
from tailgate.sql.binder.writes.targets import check_writable
from tailgate.sql.statements import CreateIndex
from tailgate.sql.statements.writes import Expression
from tailgate.sql.tables.constraints import check_key_types
from tailgate.sql.tables.names import columns_part, free_name, without_table
from tailgate.sql.tables.storage.access_methods import check_method, operator_class
from tailgate.sql.tables.storage.parameters import changed

UNCHECKED = "An index says by which columns rows are looked up. Unique indexes of tables are checked."
UNUSED = "Equal values of this type may be stored in several forms. A condition on the column is a scan."
SCAN = "A materialized view with the expression as a column, or with the rows of the condition, can have an index that is used."
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
    columns, expressions = _columns(statement, relation), _expressions(statement, relation, schema.name)
    condition = None if statement.condition is None else defined(relation, _unqualified(statement.condition, relation, schema.name), None)
    check_method(statement)
    include = tuple(_position(name, relation) for name in statement.include)
    width = len(columns) + len(expressions)
    item = Index(
        catalog.next_id,
        "" if statement.name is None else statement.name.name,
        depends=(relation.id,),
        owner=relation.owner,
        schema=schema.id,
        positions=columns,
        descending=tuple(c.descending for c in statement.columns) or (False,) * width,
        nulls_first=tuple(c.nulls_first for c in statement.columns) or (False,) * width,
        include=include,
        unique=statement.unique,
        method=statement.method,
        enforced=enforced,
        nulls_distinct=statement.nulls_distinct,
        expressions=expressions,
        condition=condition,
        storage=Storage(
            parameters=changed({}, [(name, str(value)) for name, value in statement.options], statement.method),
            columns={place: ColumnStorage(collation=c.collation) for place, c in enumerate(statement.columns) if c.collation},
        ),
    )
    item = replace(item, operator_classes=_classes(item, relation, statement))
    if statement.name is not None:
        catalog.check_new(item.name, schema)
    else:
        included = [relation.columns[i].name for i in include]
        part = "primary" if statement.default else columns_part([*names(item, relation), *included])
        item = replace(item, name=free_name(relation.name, part, "idx", lambda n: catalog.at(n, schema) is not None))
    return item, _notices(item, relation)


def _relation(name: Name, catalog: Catalog) -> Item:
    """Returns the relation to index. Raises 42809 for a view, 55000 for one that is not stored."""
    relation = catalog.relation(replace(name, position=None))
    if isinstance(relation, View):
        detail = "This operation is not supported for views."
        raise WrongObjectType(f'cannot create index on relation "{relation.name}"', detail=detail, hint=VIEW)
    if not relation.stored:
        hint = "Create a materialized view of it, or create it with CREATE MATERIALIZED SOURCE."
        raise ObjectNotInPrerequisiteState(f'{relation.kind} "{relation.name}" is not stored, so it has no rows to look up', hint=hint)
    return relation


def _columns(statement: CreateIndex, relation: Item) -> tuple[int, ...]:
    """Returns the positions of the columns; for CREATE DEFAULT INDEX those of the key, or all columns."""
    if statement.default:
        return relation.key or tuple(range(len(relation.columns)))
    return tuple(_position(c.name, relation) for c in statement.columns if c.expression is None)


def _expressions(statement: CreateIndex, relation: Item, schema: str) -> tuple[IndexExpression, ...]:
    """Returns the expressions. Raises 42P17, 0A000 and others. Those with the same name get numbers."""
    expressions = list[IndexExpression]()
    used = {c.name for c in statement.columns if c.expression is None}
    for place, column in enumerate(statement.columns):
        if column.expression is not None:
            expression = defined(relation, _unqualified(column.expression, relation, schema), place)
            candidates = (f"{expression.name}{number or ''}" for number in count())
            expressions.append(replace(expression, name=next(name for name in candidates if name not in used)))
            used.add(expressions[-1].name)
    return tuple(expressions)


def _unqualified(expression: Expression, relation: Item, schema: str) -> Expression:
    """Returns an expression whose text names columns without their relation, which may get another name."""
    tree = expression.tree.copy()
    for column in tree.find_all(exp.Column):
        if (column.text("db"), column.text("table")) == (schema, relation.name):
            column.set("db", None)
    return replace(expression, text=without_table(expression.text, relation.name, schema), tree=tree)


def _classes(index: Index, relation: Item, statement: CreateIndex) -> tuple[str, ...]:
    """Returns the operator classes that are not the default, or () if all are. Raises 42704, 42804 or 0A000."""
    types = [(relation.columns[e] if isinstance(e, int) else field_of(relation, e)).type for e in index.elements]
    if index.enforced:
        check_key_types(types, "a unique index on a column")
    names = [column.operator_class for column in statement.columns] or [""] * len(types)
    classes = tuple(operator_class(name, type, statement.method) for name, type in zip(names, types, strict=True))
    return classes if any(classes) else ()


def _notices(index: Index, relation: Item) -> list[Notice]:
    """Returns notices for what an index does not do."""
    notices = []
    if index.expressions or index.condition is not None:
        what = "expressions" if index.expressions else "a condition"
        notices.append(Notice(f'index "{index.name}" is not used by queries, because it has {what}', hint=SCAN))
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
