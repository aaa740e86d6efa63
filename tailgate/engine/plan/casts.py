"""PostgreSQL's casts, for casts that the planner or a source adds."""

from __future__ import annotations

from tailgate.lake.errors import CannotCoerce
from tailgate.lake.types import Type
from tailgate.sql.functions.catalogue import cast
from tailgate.sql.functions.entry import Function
from tailgate.sql.plan import Call, Scalar

NUMERIC_TO_NUMERIC = Function("cast", ("numeric",), "numeric", "CAST({0} AS {type})", "CAST({0} AS {type})", "cast")


def cast_to(scalar: Scalar, to: Type) -> Scalar:
    """Casts a scalar to a type; returns it unchanged if it has the type. Raises 42846 if no cast exists."""
    source = scalar.type
    if source.spark == to.spark and source.name == to.name:
        return scalar
    function = NUMERIC_TO_NUMERIC if source.name == to.name == "numeric" else cast(source.name, to.name)
    if function is None or not function.spark or source.is_array or to.is_array:
        raise CannotCoerce(f"cannot cast type {source} to {to}")
    return Call(function, (scalar,), to)
