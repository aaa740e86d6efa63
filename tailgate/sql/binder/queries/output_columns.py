"""Names of output columns, and references to them by name or number in GROUP BY and ORDER BY.

Source: PostgreSQL 15, src/backend/parser/parse_target.c FigureColname(), parse_clause.c
findTargetlistEntrySQL92().
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tailgate.lake.errors import AmbiguousColumn, InvalidColumnReference, SyntaxError_
from tailgate.sql.grammar.names import position
from tailgate.sql.lexer.tokens import INTEGER_DIGITS_MAX
from tailgate.sql.plan import Case, Scalar
from tailgate.sql.plan.correlation import subqueries_of
from tailgate.sql.plan.rewriting import walk

SUBQUERY = "(SELECT …)"  # a placeholder for the name of the subquery's column


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a select list.

    `scalar` is over the input. `node` is None if the column is from `*`.
    """

    name: str
    scalar: Scalar
    node: exp.Expr | None = None


def column_name(node: exp.Expr, scalar: Scalar) -> str:
    """Returns the name that PostgreSQL gives an output column without AS.

    A subquery has the name of its column.
    """
    name = _figure(node)[1]
    if name is SUBQUERY:
        return next((s.relation.columns[s.column].name for s in subqueries_of(_naming(node, scalar))), "?column?")
    return name or "?column?"


def _naming(node: exp.Expr, scalar: Scalar) -> Scalar:
    """Returns the part of a scalar from which its column takes its name: of a CASE it is the ELSE."""
    while not isinstance(node, exp.Subquery):
        if isinstance(node, exp.Case):
            case = next((s for s in walk(scalar) if isinstance(s, Case)), None)
            if case is None:
                return scalar
            node, scalar = node.args["default"], case.otherwise
        else:
            node = node.this
    return scalar


def _figure(node: exp.Expr) -> tuple[int, str]:
    """Returns the strength of a name and the name.

    The strength is 0 for no name, 1 for that of a type or CASE, 2 for that of a column or function.
    """
    match node:
        case exp.Column() | exp.Dot():
            last = node.this if isinstance(node, exp.Column) else node.expression
            return 2, last.name
        case exp.Paren() | exp.Bracket() | exp.Collate():
            return _figure(node.this)
        case exp.Anonymous():
            return (2, str(node.this)) if str(node.this)[0].isalpha() or str(node.this)[0] == "_" else (0, "")
        case exp.Filter() | exp.Window() | exp.WithinGroup():
            return _figure(node.this)
        case exp.AtTimeZone():
            return 2, "timezone"
        case exp.Cast():
            strength, name = _figure(node.this)
            return (strength, name) if strength > 1 else (1, str(node.args["to"].args["kind"]))
        case exp.Case():
            default = node.args.get("default")
            strength, name = _figure(default) if default is not None else (0, "")
            return (strength, name) if strength > 1 else (1, "case")
        case exp.Subquery():
            return 2, SUBQUERY
        case exp.Exists():
            return 2, "exists"
        case exp.Array():
            return 2, "array"
        case exp.Overlaps():
            return 2, "overlaps"
        case exp.Tuple():
            return 2, "row"
    return 0, ""


def by_number(node: exp.Expr, outputs: list[Output], clause: str) -> Output | None:
    """Returns the output column that an integer refers to, or None if the node is not a constant.

    Raises 42P10 if the number is out of range, 42601 for other constants.
    """
    inner = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(inner, exp.Literal):
        return None
    at = position(node)
    if inner.is_string or not inner.this.isdigit() or len(inner.this) > INTEGER_DIGITS_MAX:
        raise SyntaxError_(f"non-integer constant in {clause}", position=at)
    number = -int(inner.this) if isinstance(node, exp.Neg) else int(inner.this)
    if not 1 <= number <= len(outputs):
        raise InvalidColumnReference(f"{clause} position {number} is not in select list", position=at)
    return outputs[number - 1]


def by_name(node: exp.Expr, outputs: list[Output], clause: str) -> Output | None:
    """Returns the output column that a name without a table refers to, or None. Raises 42702."""
    if not isinstance(node, exp.Column) or node.args.get("table") or isinstance(node.this, exp.Star):
        return None
    matches = [o for o in outputs if o.name == node.name]
    if any(o.scalar != matches[0].scalar for o in matches):
        raise AmbiguousColumn(f'{clause} "{node.name}" is ambiguous', position=position(node))
    return matches[0] if matches else None
