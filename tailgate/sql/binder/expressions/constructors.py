"""Binds casts, CASE, ARRAY, COLLATE and parentheses."""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    IndeterminateDatatype,
    TailgateError,
)  # fmt: skip
from tailgate.lake.types import UNKNOWN, Type
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.domains import in_domain
from tailgate.sql.binder.enums import cast_type
from tailgate.sql.binder.types.coercion import bare_type, cast
from tailgate.sql.binder.types.literals import literal
from tailgate.sql.binder.types.overloads import fixed
from tailgate.sql.functions import catalogue
from tailgate.sql.grammar.names import position
from tailgate.sql.numeric_types import is_maintained
from tailgate.sql.plan import (
    Call,
    Case,
    Literal,
    Scalar,
)  # fmt: skip


def bind_cast(binder: ExpressionBinder, node: exp.Cast) -> Scalar:
    target, domain = cast_type(binder, node.args["to"])
    value = _cast(binder, node, target)
    return value if domain is None else in_domain(binder, value, domain, position(node))


def _cast(binder: ExpressionBinder, node: exp.Cast, target: Type) -> Scalar:
    if isinstance(node.this, exp.Array) and not node.this.expressions:
        return Literal((), target, position(node))
    at = position(node)
    if target.name in ("float4", "float8") and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return literal(node.this.this, target, position(node.this))  # 1e300 does not fit into numeric
    return cast(binder.bind(node.this), target, binder.parameters, at)


def bind_case(binder: ExpressionBinder, node: exp.Case) -> Scalar:
    subject = binder.bind(node.this) if node.this is not None else None
    conditions: list[Scalar] = []
    for branch in node.args["ifs"]:
        if subject is None:
            conditions.append(binder.boolean(branch.this, "CASE/WHEN"))
        else:
            conditions.append(binder.operate("=", [subject, binder.bind(branch.this)], position(branch)))
    default = node.args.get("default")
    nodes = [b.args["true"] for b in node.args["ifs"]]
    scalars = [binder.bind(n) for n in nodes]
    otherwise = binder.bind(default) if default is not None else Literal(None, UNKNOWN)
    # ELSE comes first in the choice of the common type, as in transformCaseExpr().
    values, type = binder.unify([default if default is not None else exp.Null(), *nodes], [otherwise, *scalars], "CASE")
    return Case(tuple(zip(conditions, values[1:], strict=True)), values[0], type)


def bind_array(binder: ExpressionBinder, node: exp.Array) -> Scalar:
    nodes = list(node.expressions)
    if not nodes:
        raise empty_array(position(node))
    if any(isinstance(n, exp.Array) for n in nodes):
        raise FeatureNotSupported("arrays of more than one dimension are not supported", position=position(node))
    scalars = [binder.bind(n) for n in nodes]
    elements, type = binder.unify(nodes, list(map(fixed, scalars)) if is_maintained() else scalars, "ARRAY")
    if type.is_array:
        raise FeatureNotSupported("arrays of more than one dimension are not supported", position=position(node))
    if all(isinstance(m, Literal) for m in elements):
        return Literal(tuple(m.value for m in elements if isinstance(m, Literal)), type.array(), position(node))
    return Call(catalogue.calls("ARRAY")[0], elements, type.array(), position(node))


def bind_collate(binder: ExpressionBinder, node: exp.Collate) -> Scalar:
    """Binds COLLATE.

    Raises 0A000 for any collation but the supported one, which compares bytes.
    """
    value = binder.typed(node.this)
    if node.args["expression"].name not in ("C", "POSIX", "default", "ucs_basic"):
        raise FeatureNotSupported(f'collation "{node.args["expression"].name}" is not supported', position=position(node))
    if value.type.facts.category != "S":
        raise DatatypeMismatch(f"collations are not supported by type {bare_type(value.type)}", position=position(node))
    return value


def bind_parentheses(binder: ExpressionBinder, node: exp.Paren) -> Scalar:
    return binder.bind(node.this)


def empty_array(at: int | None) -> TailgateError:
    return IndeterminateDatatype(
        "cannot determine type of empty array",
        hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].",
        position=at,
    )
