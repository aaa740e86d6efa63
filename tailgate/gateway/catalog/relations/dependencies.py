"""Rows of pg_depend: which objects are dropped with which others ('a', 'i'), and which prevent that these are dropped ('n').

Those of PostgreSQL 15 for tables, their columns, constraints, indexes, defaults, sequences and types, views and schemas. A view depends
on whole relations here, in PostgreSQL on their columns.

Source: PostgreSQL 15, section 53.18, "pg_depend"; src/backend/catalog/pg_constraint.c, index.c, heap.c.
"""

from __future__ import annotations

from collections.abc import Iterator

from tailgate.gateway.catalog.relations import composite_rows
from tailgate.gateway.catalog.relations.constraint_rows import CONSTRAINTS, pg_constraint
from tailgate.gateway.catalog.relations.enum_rows import TYPE
from tailgate.gateway.catalog.relations.rows import (
    CLASS,
    CONSTRAINT,
    NAMESPACE,
    PROC,
    REWRITE,
    RULES,
    TYPES,
    TYPES_ARRAY,
    Row,
    defaults_of,
    indexed,
    own_relations,
    pg_attrdef,
    relkind,
)
from tailgate.lake.catalog import (
    FIRST_ID,
    SYSTEM_RELATIONS,
    Catalog,
    Companion,
    Composite,
    Enum,
    Function,
    Index,
    Item,
    Sequence,
    Table,
    UserType,
)
from tailgate.lake.catalog.dropping import SEQUENCE
from tailgate.lake.catalog.formats import IndexExpression
from tailgate.lake.catalog.schemas import TAILGATE_ID
from tailgate.lake.types import ARRAYS_OF_NAMED
from tailgate.sql.grammar.extensions import PLPGSQL_OID

ATTRDEF, EXTENSION = 2604, 3079  # oids of pg_attrdef and pg_extension


def pg_depend(catalog: Catalog) -> Iterator[Row]:
    yield _depends(NAMESPACE, TAILGATE_ID, EXTENSION, PLPGSQL_OID, "e")
    made_by_tailgate = (item for item in catalog.visible if isinstance(item, Companion))  # with another item, which pg_dump copies
    for relation in (*SYSTEM_RELATIONS.values(), *made_by_tailgate):
        yield _depends(CLASS, relation.id, EXTENSION, PLPGSQL_OID, "e")
    yield from _of_relations(catalog)
    constraints = list(pg_constraint(catalog))
    yield from _of_constraints(constraints)
    yield from _of_indexes(catalog, {row["oid"] for row in constraints if row["contype"] in "pu"})
    yield from _of_defaults(catalog)
    yield from _of_schemas(catalog)
    for item in catalog.each(Sequence):
        if item.column:
            table = catalog.expect(Table, item.depends[0])
            number = [c.name for c in table.columns].index(item.column) + 1
            yield _depends(CLASS, item.id, CLASS, table.id, "i" if item.column in table.identity else "a", column=number)


def _depends(kind: int, oid: int, on_kind: int, on: int, how: str, *, own: int = 0, column: int = 0) -> Row:
    """Returns the row of an object that depends on another. `own`, `column`: numbers of columns of both."""
    of_other = {"refclassid": on_kind, "refobjid": on, "refobjsubid": column}
    return {"classid": kind, "objid": oid, "objsubid": own, **of_other, "deptype": how}


def _of_relations(catalog: Catalog) -> Iterator[Row]:
    """Yields the rows of row types, of columns with types of users, and of the rules of views."""
    for item in own_relations(catalog):
        yield _depends(TYPE, TYPES + item.id, CLASS, item.id, "i")
        yield _depends(TYPE, TYPES_ARRAY + item.id, TYPE, TYPES + item.id, "i")
        for number, field in enumerate(item.columns, 1):
            oid = field.type.oid if field.domain is None else field.domain.id
            if oid >= FIRST_ID and not field.is_dropped:
                yield _depends(CLASS, item.id, TYPE, oid, "n", own=number)
        if relkind(item) != "r":
            yield _depends(REWRITE, RULES + item.id, CLASS, item.id, "i")
            for other in item.depends:
                yield _depends(REWRITE, RULES + item.id, _class_of(catalog.get(other)), other, "n")
    for composite in catalog.each(Composite):
        relation = composite_rows.CLASSES + composite.id
        yield _depends(CLASS, relation, TYPE, composite.id, "i")
        for number, field in enumerate(composite.columns, 1):
            if field.type.oid >= FIRST_ID:
                yield _depends(CLASS, relation, TYPE, field.type.oid, "n", own=number)
    for type in (*catalog.each(Composite), *catalog.each(Enum)):
        yield _depends(TYPE, type.id + ARRAYS_OF_NAMED, TYPE, type.id, "i")


def _class_of(item: Item | None) -> int:
    """Returns the oid of the relation of the system catalog that has an item."""
    return PROC if isinstance(item, Function) else TYPE if isinstance(item, UserType) else CLASS


def _of_constraints(constraints: list[Row]) -> Iterator[Row]:
    for row in constraints:
        oid, keys = row["oid"], row["conkey"] or ()
        if row["contypid"]:
            yield _depends(CONSTRAINT, oid, TYPE, row["contypid"], "a")
        elif not keys:
            yield _depends(CONSTRAINT, oid, CLASS, row["conrelid"], "a")
        for number in keys:
            yield _depends(CONSTRAINT, oid, CLASS, row["conrelid"], "a", column=number)
            if row["contype"] == "c":
                yield _depends(CONSTRAINT, oid, CLASS, row["conrelid"], "n", column=number)
        if row["contype"] == "f":
            for number in row["confkey"]:
                yield _depends(CONSTRAINT, oid, CLASS, row["confrelid"], "n", column=number)
            yield _depends(CONSTRAINT, oid, CLASS, row["conindid"], "n")


def _of_indexes(catalog: Catalog, constraints: set[int]) -> Iterator[Row]:
    """Yields the rows of indexes. `constraints`: the oids of those that have an index."""
    for each in indexed(catalog):
        # the id of the constraint of an index, or of the table's key
        constraint = CONSTRAINTS + (each.index.id if isinstance(catalog.items.get(each.oid), Index) else each.relation.id)
        if constraint in constraints:
            yield _depends(CLASS, each.oid, CONSTRAINT, constraint, "i")
            continue
        expressions = [e for e in (*each.columns, each.index.condition) if isinstance(e, IndexExpression)]
        plain = {place + 1 for place in each.columns if isinstance(place, int)}
        for number in sorted((plain or {0}) | {place + 1 for expression in expressions for place in expression.columns}):
            yield _depends(CLASS, each.oid, CLASS, each.relation.id, "a", column=number)


def _of_defaults(catalog: Catalog) -> Iterator[Row]:
    for row in pg_attrdef(catalog):
        yield _depends(ATTRDEF, row["oid"], CLASS, row["adrelid"], "a", column=row["adnum"])
        item = catalog[row["adrelid"]]
        for sequence in SEQUENCE.findall(defaults_of(item).get(item.columns[row["adnum"] - 1].name, "")):
            yield _depends(ATTRDEF, row["oid"], CLASS, int(sequence), "n")


def _of_schemas(catalog: Catalog) -> Iterator[Row]:
    """Yields the rows of objects in schemas. An index depends on its table."""
    for item in catalog.visible:
        if item.is_relation or isinstance(item, Sequence):
            yield _depends(CLASS, item.id, NAMESPACE, item.schema, "n")
        elif isinstance(item, Function | UserType):
            yield _depends(_class_of(item), item.id, NAMESPACE, item.schema, "n")
