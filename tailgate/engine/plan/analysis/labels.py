"""Names for columns that rewrites add, derived from the columns' expressions."""

from __future__ import annotations

from tailgate.sql.plan import Call, Column, Literal, Relation, Scalar

Names = tuple[str, ...]


def names(relation: Relation) -> Names:
    """Returns the names of a relation's columns."""
    return tuple(f.name for f in relation.columns)


def label(scalar: Scalar, over: Names) -> str:
    """Returns a name for a column, derived from its expression.

    >>> from tailgate.sql.plan import Column
    >>> from tailgate.lake.types import TEXT
    >>> label(Column(0, TEXT), ("a", "b"))
    'a'
    """
    match scalar:
        case Column(index=index):
            return over[index]
        case Call(function, (_, Literal(value=str() as key))) if function.name in ("->", "->>"):
            return key
        case Call(_, (argument, *_)):
            return label(argument, over)
        case _:
            return "?column?"
