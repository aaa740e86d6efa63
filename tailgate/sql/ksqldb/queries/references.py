"""References to columns with the name of their source, so that equal ones are written alike: `id` and `s.id` in SELECT and GROUP BY."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb.queries.scope import Scope


def qualified(query: e.SelectQuery, scope: Scope) -> e.SelectQuery:
    """Returns a query whose references have the first name of their source in a join, and no source otherwise."""
    return replace(
        query,
        items=_rebuilt(query.items, scope),
        where=_rebuilt(query.where, scope),
        group_by=_rebuilt(query.group_by, scope),
        partition_by=_rebuilt(query.partition_by, scope),
        having=_rebuilt(query.having, scope),
    )


def sources_of(expression: e.Expression, scope: Scope) -> set[str]:
    """Returns the sources of a join whose columns an expression reads, without names that none or several of them have."""
    references = (part for part in e.walk(_rebuilt(expression, scope)) if isinstance(part, e.ColumnReference))
    return {reference.source for reference in references if reference.source is not None}


def _rebuilt(part: Any, scope: Scope, parameters: tuple[str, ...] = ()) -> Any:
    """Returns an expression, or a tuple of them, with its references. `parameters`: of the lambdas around it."""
    match part:
        case e.ColumnReference():
            return part if part.source is None and part.column in parameters else _reference(part, scope)
        case e.Lambda():
            return replace(part, body=_rebuilt(part.body, scope, (*parameters, *part.parameters)))
        case tuple():
            return tuple(_rebuilt(item, scope, parameters) for item in part)
        case e.TypeName():
            return part
    if not is_dataclass(part) or isinstance(part, type):
        return part
    return replace(part, **{f.name: _rebuilt(getattr(part, f.name), scope, parameters) for f in fields(part)})


def _reference(reference: e.ColumnReference, scope: Scope) -> e.ColumnReference:
    owners = [s for s in scope.sources if reference.source in (None, *s.names) and reference.column in s.columns]
    if len(owners) == 1:
        return replace(reference, source=owners[0].names[0] if scope.joined else None)
    is_own = not scope.joined and reference.source in scope.names  # a pseudo column
    return replace(reference, source=None) if is_own else reference
