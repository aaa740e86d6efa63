"""Functions with lambdas. `queries.lambdas` translates their calls.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "Invocation Functions".
"""

from __future__ import annotations

from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.functions.entry import ANY, ARRAY, MAP, Function

LAMBDA = TypeName("lambda")
_TRANSFORM = "The values of a lambda for each element of an array, or of two lambdas for the keys and the values of a map."
_FILTER = "The elements of an array, or the entries of a map, for which a lambda is true."
_REDUCE = "The last state: the value of a lambda of the state and an element of an array, or the state and an entry of a map."

ROWS = (
    Function("transform", (ARRAY, LAMBDA), "same", "", _TRANSFORM),
    Function("transform", (MAP, LAMBDA, LAMBDA), "same", "", _TRANSFORM),
    Function("filter", (ARRAY, LAMBDA), "same", "", _FILTER),
    Function("filter", (MAP, LAMBDA), "same", "", _FILTER),
    Function("reduce", (ARRAY, "any", LAMBDA), ANY, "", _REDUCE),
    Function("reduce", (MAP, "any", LAMBDA), ANY, "", _REDUCE),
)
