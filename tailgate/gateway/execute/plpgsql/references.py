"""Finds the names in a statement that may be variables of PL/pgSQL, and writes the statement with parameters in their place.

    INSERT INTO t SELECT r.*, n + 1 FROM u      ──►  INSERT INTO t SELECT $1 AS "a", $2 AS "b", $3 + 1 FROM u

A name is a variable wherever an expression may name a column: not as the target of INSERT and SET, and not where ORDER BY and GROUP BY
name a column of the result.

Source: PostgreSQL 15, plpgsql_post_column_ref() in pl_comp.c, findTargetlistEntrySQL92() in parse_clause.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass

from sqlglot import exp

from tailgate.lake.keywords import quoted
from tailgate.sql.grammar.names import position
from tailgate.sql.grammar.queries import written
from tailgate.sql.lexer.tokens import tokens
from tailgate.sql.plpgsql.nodes import Reference
from tailgate.sql.statements import CreateTableAs, Delete, Insert, Merge, QueryText, ReturningItem, Select, Update, WithWrites

READING = (Select, Insert, Update, Delete, Merge, WithWrites, CreateTableAs)  # statements whose expressions may contain variables


@dataclass(frozen=True, slots=True)
class Use:
    """A name in a statement, from `start` to `end`.

    `parts`: the name; the last part of name.* is *. `output`: it is an item of a select list, so a column of the result has its name.
    `listed`: it stands where several expressions may stand.
    """

    parts: Reference
    start: int
    end: int
    output: bool
    listed: bool


def uses(statement: object, text: str) -> tuple[Use, ...]:
    """Returns the names of columns and variables in a statement, in order."""
    if not isinstance(statement, READING):
        return ()
    found: dict[int, tuple[exp.Column, bool]] = {}
    for node, output in _columns(statement):
        if (at := position(node)) is not None and not _names_output(node):
            found[at] = (node, output)
    row = tokens(text)
    ends = {token.position: index for index, token in enumerate(row)}
    return tuple(_use(node, at, row[ends[at] + 2 * (len(_parts(node)) - 1)].end, output) for at, (node, output) in sorted(found.items()))


def reads_relations(statement: object) -> bool:
    """Returns whether names in a statement may be columns."""
    return not isinstance(statement, Select) or statement.query.tree.find(exp.Table, exp.Subquery) is not None


def with_parameters(text: str, replacements: Sequence[tuple[Use, str]]) -> str:
    """Returns a statement with other texts in place of names."""
    for use, replacement in reversed(replacements):
        text = text[: use.start] + replacement + text[use.end :]
    return text


def parameter(number: int, use: Use, name: str = "") -> str:
    """Returns the text of a parameter in place of a name. `name`: that of the column of the result, by default the last part."""
    return f"${number} AS {quoted(name or use.parts[-1])}" if use.output else f"${number}"


def _use(node: exp.Column, start: int, end: int, output: bool) -> Use:
    in_list = output or node.parent is None or isinstance(node.parent, exp.Tuple)
    return Use(_parts(node), start, end, output, in_list)


def _parts(node: exp.Column) -> Reference:
    names = (node.args.get(part) for part in ("catalog", "db", "table", "this"))
    return tuple("*" if isinstance(name, exp.Star) else name.name for name in names if name is not None)


def _columns(value: object) -> Iterator[tuple[exp.Column, bool]]:
    """Yields the names in a part of a statement, and whether each is an item of a select list."""
    match value:
        case exp.Expr():
            for node in value.find_all(exp.Column):
                yield node, isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
            for cte in value.find_all(exp.CTE):
                yield from _columns(written(cte))
        case QueryText():
            yield from _columns(value.tree)
        case ReturningItem(tree=exp.Column() as node):
            yield node, True
        case tuple():
            for part in value:
                yield from _columns(part)
        case _ if is_dataclass(value):
            for field in fields(value):
                yield from _columns(getattr(value, field.name))


def _names_output(node: exp.Column) -> bool:
    """Returns whether a name in ORDER BY, GROUP BY or DISTINCT ON is that of a column of the result."""
    parent = node.parent
    if isinstance(parent, exp.Ordered):
        parent = parent.parent
    if not isinstance(parent, (exp.Order, exp.Group, exp.Distinct, exp.Tuple)) or len(_parts(node)) > 1:
        return False
    query = node.find_ancestor(exp.Select)
    return query is not None and parent.find_ancestor(exp.Select) is query and _is_clause(parent) and node.name in _outputs(query)


def _is_clause(node: exp.Expr | None) -> bool:
    while isinstance(node, exp.Tuple):
        node = node.parent
    return isinstance(node, (exp.Order, exp.Group, exp.Distinct))


def _outputs(query: exp.Select) -> list[str]:
    return [item.alias_or_name for item in query.expressions]
