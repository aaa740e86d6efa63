"""Compiles aggregates to those of the circuit, which read columns of the operator's input."""

from __future__ import annotations

from dataclasses import dataclass, field

from tailgate.engine.plan.casts import cast_to
from tailgate.engine.plan.circuit import operators
from tailgate.engine.plan.circuit.operators import SortColumn
from tailgate.engine.plan.circuit.steps import NOTHING
from tailgate.lake.errors import FeatureNotSupported, NumericValueOutOfRange
from tailgate.sql.functions.aggregates import ANY_NULL, MAINTAINED, VARIANCES, WITHIN_GROUP
from tailgate.sql.plan import AggregateCall, Case, Literal, Scalar, SortKey
from tailgate.sql.plan.sort_keys import sort_key

# any of the values; it is the smallest stored form
ANY_OF = ("single_value", "one_of", "any_value")


@dataclass
class OperatorInput:
    """The columns of an operator's input, each once; the first `fixed` have given positions."""

    fixed: int
    scalars: list[Scalar] = field(default_factory=list)

    def column(self, scalar: Scalar) -> int:
        """Returns the position of a scalar's column, which is added if necessary."""
        if scalar not in self.scalars[self.fixed :]:
            self.scalars.append(scalar)
        return self.scalars.index(scalar, self.fixed)

    def sorted_by(self, keys: tuple[SortKey, ...]) -> tuple[SortColumn, ...]:
        """Returns the sort order, with a column for each sort key."""
        return tuple(SortColumn(self.column(sort_key(k.expression)), k.descending, k.nulls_first) for k in keys)


def aggregate(call: AggregateCall, columns_in: OperatorInput) -> operators.AggregateCall:
    """Returns the circuit's form of an aggregate. Raises 0A000 if it cannot be maintained.

    For rows that FILTER excludes the arguments are not evaluated: they are NULL, which most
    aggregates ignore.
    """
    name = call.function.name
    if name not in (*MAINTAINED, *ANY_OF):
        raise FeatureNotSupported(f"aggregate {name} in a materialized view is not supported", position=call.position)
    if name == "array_agg" and call.type.multidimensional:
        raise FeatureNotSupported("array_agg of arrays in a materialized view is not supported", position=call.position)
    fraction, arguments = 0.0, call.arguments
    distinct = call.distinct and name not in ("min", "max")
    if name in WITHIN_GROUP:
        fraction, arguments = _fraction(call), tuple(k.expression for k in call.order)
    if name in ANY_OF:
        name, arguments = "min", (cast_to(arguments[0], call.type),)
    elif name in ("min", "max"):
        # the result is one of the values, but the result type of a numeric may be wider
        name, arguments = extreme(name, cast_to(arguments[0], call.type))
    if name == "count" and not call.distinct and arguments and isinstance(arguments[0], Literal) and arguments[0].value is not None:
        arguments = ()
    if name == "count" and not arguments and call.filter is not None:
        arguments = (NOTHING,)
    columns = tuple(columns_in.column(filtered(call.filter, a)) for a in arguments)
    keys = call.order
    if distinct and name in ("sum", "avg", *VARIANCES) and arguments[0].type.general:
        keys = (SortKey(arguments[0], False, False),)  # equal values may have several stored forms
    order = columns_in.sorted_by(tuple(SortKey(filtered(call.filter, k.expression), k.descending, k.nulls_first) for k in keys))
    filter = columns_in.column(call.filter) if call.filter is not None and name in ANY_NULL else -1
    return operators.AggregateCall(name, columns, call.type, distinct, filter, order, fraction, call.limit or 0, call.unique)


def extreme(name: str, scalar: Scalar) -> tuple[str, tuple[Scalar, ...]]:
    """Returns the function and arguments for min or max.

    If equal values of the type have several stored forms, the function compares sort keys instead.
    """
    key = sort_key(scalar)
    return (name, (scalar,)) if key is scalar else (f"{name}_by", (scalar, key))


def filtered(condition: Scalar | None, scalar: Scalar) -> Scalar:
    """Returns the scalar guarded by FILTER: NULL, and not evaluated, where the condition is not true."""
    return scalar if condition is None else Case(((condition, scalar),), Literal(None, scalar.type), scalar.type)


def _fraction(call: AggregateCall) -> float:
    """Returns the fraction of a percentile, 0 for other aggregates. Raises 0A000 or 22003."""
    if not call.arguments:
        return 0.0
    (fraction,) = call.arguments
    if not isinstance(fraction, Literal) or not isinstance(fraction.value, float):
        raise FeatureNotSupported(f"{call.function.name} of other than a literal is not supported in a view", position=call.position)
    if not 0 <= fraction.value <= 1:
        raise NumericValueOutOfRange(f"percentile value {fraction.value:g} is not between 0 and 1", position=call.position)
    return fraction.value
