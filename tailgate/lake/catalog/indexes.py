"""User-defined indexes: the columns by which rows of a relation are looked up."""

from __future__ import annotations

from tailgate.lake.catalog.catalog import Catalog
from tailgate.lake.catalog.formats import IndexExpression
from tailgate.lake.catalog.item_fields import DEFAULT_COLLATION, Storage
from tailgate.lake.catalog.items import Index, Item
from tailgate.lake.catalog.names import quoted
from tailgate.lake.keywords import quoted_text

# types whose equal values have the same stored form, so that a look-up by stored form finds all equal values
KEY_TYPES = frozenset(
    (
        "int2",
        "int4",
        "int8",
        "text",
        "varchar",
        "bool",
        "date",
        "timestamp",
        "timestamptz",
        "uuid",
        "enum",
        "inet",
        "cidr",
        "macaddr",
        "macaddr8",
        "bit",
        "varbit",
        "timetz",
        "char",
        "money",
        "int4range",
        "int8range",
        "daterange",
        "tsrange",
        "tstzrange",
        "int4multirange",
        "int8multirange",
        "datemultirange",
        "tsmultirange",
        "tstzmultirange",
    )
)


def indexes(catalog: Catalog, relation: int | None = None) -> tuple[Index, ...]:
    """Returns all indexes by id, or those of one relation."""
    return tuple(i for i in catalog.visible if isinstance(i, Index) and relation in (None, i.depends[0]))


def definition(index: Index, on: str, relation: Item, *, pretty: bool = False) -> str:
    """Returns the CREATE INDEX statement, as pg_get_indexdef() prints it. `on`: the name of the relation."""
    parts = []
    texts = element_texts(index, relation, pretty=pretty)
    classes = index.operator_classes or ("",) * len(texts)
    for place, (text, name, descending, first) in enumerate(zip(texts, classes, index.descending, index.nulls_first, strict=True)):
        own = collation_of(index, place, relation)
        collate = "" if own == _of_column(index.elements[place], relation) else f" COLLATE {quoted(own)}"
        text += collate + f" {quoted(name)}" * bool(name) + " DESC" * descending
        parts.append(text if first == descending else f"{text} NULLS {'FIRST' if first else 'LAST'}")
    include = f" INCLUDE ({', '.join(quoted(relation.columns[i].name) for i in index.include)})" if index.include else ""
    nulls = "" if index.nulls_distinct else " NULLS NOT DISTINCT"
    condition = "" if index.condition is None else f" WHERE {expression_text(index.condition, pretty=pretty)}"
    columns = f"USING {index.method} ({', '.join(parts)}){include}{nulls}{_with_clause(index.storage)}{condition}"
    return f"CREATE {'UNIQUE ' * index.unique}INDEX {quoted(index.name)} ON {on} {columns}"


def collation_of(index: Index, place: int, relation: Item) -> str:
    """Returns the collation by which a column of an index compares texts: that of COLLATE, or of the column of the relation."""
    return index.storage.of(place).collation or _of_column(index.elements[place], relation)


def _of_column(element: int | IndexExpression, relation: Item) -> str:
    """Returns the collation of a column of a relation, or of an expression: that of its columns, if only one is not the default."""
    positions = (element,) if isinstance(element, int) else element.columns
    own = {collation for i in positions if (collation := relation.storage.of(i).collation)}
    return own.pop() if len(own) == 1 else DEFAULT_COLLATION


def _with_clause(storage: Storage) -> str:
    return f" WITH ({', '.join(parameter_texts(storage))})" if storage.parameters else ""


def parameter_texts(storage: Storage) -> list[str]:
    """Returns the storage parameters with their values, as in the clause WITH of CREATE."""
    return [f"{name}={value if quoted(value) == value else quoted_text(value)}" for name, value in storage.parameters.items()]


def element_texts(index: Index, relation: Item, *, pretty: bool = False) -> list[str]:
    """Returns the columns of an index as CREATE INDEX names them: expressions other than calls are in parentheses."""
    return [quoted(relation.columns[e].name) if isinstance(e, int) else element_text(e, pretty=pretty) for e in index.elements]


def element_text(expression: IndexExpression, *, pretty: bool) -> str:
    """Returns an expression among the columns of an index."""
    text = expression_text(expression, pretty=pretty)
    return text if expression.form == "call" else f"({text})"


def expression_text(expression: IndexExpression, *, pretty: bool = False) -> str:
    """Returns an expression as pg_get_expr() prints it: with parentheses around an operator, unless `pretty`."""
    return f"({expression.text})" if expression.form == "operator" and not pretty else expression.text


def names(index: Index, relation: Item) -> list[str]:
    """Returns the names of the columns of an index, without those of INCLUDE."""
    return [relation.columns[e].name if isinstance(e, int) else e.name for e in index.elements]
