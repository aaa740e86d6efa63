"""Binds casts, CASE, ARRAY, COLLATE and parentheses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from tailgate.lake.errors import (
    DatatypeMismatch,
    IndeterminateDatatype,
    TailgateError,
)  # fmt: skip
from tailgate.lake.types import GENERAL, NUMERIC, UNKNOWN, Type
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.domains import in_domain
from tailgate.sql.binder.enums import cast_type
from tailgate.sql.binder.expressions.rows import bind_as
from tailgate.sql.binder.registered.casts import bind_registered, is_registered
from tailgate.sql.binder.types.coercion import STRINGS, bare_type, cast
from tailgate.sql.binder.types.dimensions import with_dimensions
from tailgate.sql.binder.types.literals import literal
from tailgate.sql.binder.types.overloads import fixed
from tailgate.sql.functions import catalogue
from tailgate.sql.functions.multidimensional import templates
from tailgate.sql.grammar.names import check_collation, position
from tailgate.sql.numeric_types import elements_may_be_general, is_ad_hoc, of_elements
from tailgate.sql.plan import (
    Call,
    Case,
    Literal,
    Scalar,
)  # fmt: skip
from tailgate.values.composites import dimensions


def bind_cast(binder: ExpressionBinder, node: exp.Cast) -> Scalar:
    if is_registered(node.args["to"]):
        return bind_registered(binder, node)
    target, domain = cast_type(binder, node.args["to"])
    value = _cast(binder, node, target)
    return value if domain is None else in_domain(binder, value, domain, position(node))


def _cast(binder: ExpressionBinder, node: exp.Cast, target: Type) -> Scalar:
    if _is_empty(node.this):
        return Literal(((), dimensions.EMPTY) if target.multidimensional else (), target, position(node))
    at = position(node)
    if isinstance(node.this, exp.Array) and target.composite is not None and target.is_array and not target.multidimensional:
        elements = [cast(bind_as(binder, n, target.element), target.element, binder.parameters, position(n)) for n in node.this.expressions]
        return Call(catalogue.calls("ARRAY")[0], tuple(elements), target, at)
    if target.name in ("float4", "float8") and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return literal(node.this.this, target, position(node.this))  # 1e300 does not fit into numeric
    value = bind_as(binder, node.this, target)
    is_text = value.type == UNKNOWN or (value.type.name in STRINGS and not value.type.is_array)
    if target.is_array and is_text and elements_may_be_general() and target.element == NUMERIC:
        target = replace(GENERAL, is_array=True, multidimensional=target.multidimensional)
    # an array has the dimensions of the value, which a text tells when it is read
    if target.is_array and (value.type.multidimensional or (is_text and value.type != UNKNOWN and is_ad_hoc())):
        target = target.array(multidimensional=True)
    return cast(value, target, binder.parameters, at)


def _is_empty(node: exp.Expr) -> bool:
    """Returns whether a node is ARRAY[], or an array of such ones."""
    return isinstance(node, exp.Array) and all(map(_is_empty, node.expressions))


def bind_case(binder: ExpressionBinder, node: exp.Case) -> Scalar:
    subject = binder.known(binder.bind(node.this)) if node.this is not None else None
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
    return array_of(binder, nodes, [binder.bind(n) for n in nodes], position(node))


def array_of(binder: ExpressionBinder, nodes: list[exp.Expr], scalars: list[Scalar], at: int | None) -> Scalar:
    """Returns an array of scalars, which `nodes` are. Raises 42804, 2202E."""
    scalars = scalars if elements_may_be_general() else list(map(fixed, scalars))
    with of_elements():
        elements, type = binder.unify(nodes, scalars, "ARRAY")
    if type.is_array:
        return _of_arrays(list(map(with_dimensions, elements)), at)
    if all(isinstance(m, Literal) for m in elements):
        return Literal(tuple(m.value for m in elements if isinstance(m, Literal)), type.array(), at)
    return Call(catalogue.calls("ARRAY")[0], elements, type.array(), at)


def _of_arrays(arrays: list[Scalar], at: int | None) -> Scalar:
    """Returns an array whose elements are arrays. Raises 2202E for literals with different dimensions."""
    type = arrays[0].type
    if not all(isinstance(array, Literal) for array in arrays):
        return Call(templates.construction(len(arrays)), tuple(arrays), type, at)
    values: list[Any] = [array.value for array in arrays if isinstance(array, Literal)]
    shape = dimensions.nested([None if value is None else value[1] for value in values])
    return Literal((tuple(item for value in values if value is not None for item in value[0]), shape), type, at)


def bind_collate(binder: ExpressionBinder, node: exp.Collate) -> Scalar:
    """Binds COLLATE. Raises 42804, 42704, and 0A000 for a collation that does not compare bytes."""
    value = bind_text(binder, node)
    check_collation(node.args["expression"].name, position(node))
    return value


def bind_text(binder: ExpressionBinder, node: exp.Collate) -> Scalar:
    """Binds the text before COLLATE. Raises 42804."""
    value = binder.typed(node.this)
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
