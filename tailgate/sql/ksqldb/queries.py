"""Persistent queries of ksqlDB as queries of PostgreSQL's dialect.

    SelectQuery, scope ──► Translation(text, columns, message_key)

GROUP BY ignores rows whose key is NULL, and the projection contains the key.
"""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import DuplicateColumn, FeatureNotSupported, GroupingError, InvalidColumnReference
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb import functions
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.translation import Scope, Translator, listed_names, name_of


@dataclass(frozen=True, slots=True)
class Translation:
    """A query of PostgreSQL's dialect. `message_key`: the names of the columns that are in the message's key."""

    text: str
    columns: tuple[tuple[str, TypeName], ...]
    message_key: tuple[str, ...]


def aggregation(query: e.SelectQuery, relation: str, scope: Scope) -> Translation:
    """Returns the translation of SELECT … FROM relation [WHERE …] GROUP BY … [HAVING …].

    Raises 0A000 for clauses that are not supported, 42803 for an expression that is neither a key nor an
    aggregate, and 42P10 if the projection lacks a key.
    """
    _check_clauses(query)
    translator = Translator(scope)
    keys = [translator.scalar(key) for key in query.group_by]
    columns: list[tuple[str, TypeName]] = []
    texts: list[str] = []
    key_names: dict[e.Expression, str] = {}
    for number, item in enumerate(query.items):
        if item.expression is None:
            raise GroupingError("SELECT * is not allowed with GROUP BY", hint="Write the columns out.", position=item.position)
        name, typed = name_of(item, number), translator.scalar(item.expression)
        if any(name == other for other, _ in columns):
            raise DuplicateColumn(f'column "{name}" specified more than once', position=item.position)
        if item.expression in query.group_by:
            key_names.setdefault(item.expression, name)
        elif not _is_aggregate(item.expression, query.group_by):
            raise GroupingError(
                f"Non-aggregate SELECT expression must be part of GROUP BY: {listed_names((name,))}", position=item.expression.position
            )
        columns.append((name, typed.type))
        texts.append(f"{typed.text} AS {quoted(name)}")
    missing = [key for key in query.group_by if key not in key_names]
    if missing:
        raise InvalidColumnReference(
            "Key missing from projection. The query used to build the table must include the grouping expressions in its projection.",
            position=missing[0].position,
        )
    conditions = [f"{key.text} IS NOT NULL" for key in keys]
    if query.where is not None:
        conditions.append(translator.scalar(query.where).text)
    having = f" HAVING {translator.scalar(query.having).text}" if query.having is not None else ""
    source = quoted(relation)
    text = f"SELECT {', '.join(texts)} FROM {source} WHERE {' AND '.join(conditions)} GROUP BY {', '.join(k.text for k in keys)}{having}"
    return Translation(text, tuple(columns), tuple(key_names[key] for key in query.group_by))


def _check_clauses(query: e.SelectQuery) -> None:
    """Raises 0A000 by name for clauses that are not supported."""
    if query.joins:
        raise FeatureNotSupported(
            "JOIN in CREATE TABLE … AS is not supported", hint="Use CREATE MATERIALIZED VIEW.", position=query.joins[0].position
        )
    if query.window is not None:
        raise FeatureNotSupported(
            f"WINDOW {query.window.kind.upper()} is not supported",
            hint="Use tumble, hop or session in a view.",
            position=query.window.position,
        )
    if query.emit == "final":
        raise FeatureNotSupported("EMIT FINAL is not supported", hint="Use EMIT CHANGES.", position=query.position)
    if query.partition_by:
        raise FeatureNotSupported("PARTITION BY is not supported", position=query.partition_by[0].position)
    if query.limit is not None:
        raise FeatureNotSupported("LIMIT of a persistent query is not supported", position=query.position)
    if not query.group_by:
        raise FeatureNotSupported(
            "CREATE TABLE … AS without GROUP BY is not supported", hint="Use CREATE MATERIALIZED VIEW.", position=query.position
        )


def _is_aggregate(expression: e.Expression, keys: tuple[e.Expression, ...]) -> bool:
    """Returns whether an expression contains columns only in keys and in arguments of aggregates."""
    if expression in keys or isinstance(expression, e.Constant):
        return True
    match expression:
        case e.FunctionCall(name, arguments):
            return name in functions.AGGREGATE_NAMES or all(_is_aggregate(a, keys) for a in arguments)
        case e.Operation(_, operands):
            return all(_is_aggregate(o, keys) for o in operands)
        case e.Cast(operand):
            return _is_aggregate(operand, keys)
        case e.InList(operand, items):
            return all(_is_aggregate(o, keys) for o in (operand, *items))
        case e.Between(operand, low, high):
            return all(_is_aggregate(o, keys) for o in (operand, low, high))
        case e.CaseExpression(operand, branches, otherwise):
            parts = [part for branch in branches for part in branch] + [o for o in (operand, otherwise) if o is not None]
            return all(_is_aggregate(part, keys) for part in parts)
    return False
