"""Functions that choose one of their arguments.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "Nulls".
"""

from __future__ import annotations

from tailgate.sql.ksqldb.functions.entry import Function

ROWS = (
    Function("as_value", ("any",), "same", "{0}", "Copies a column of the key into the value."),
    Function("coalesce", ("any",), "common", "coalesce({*})", "The first argument that is not NULL.", variadic=True),
    Function("ifnull", ("any", "any"), "common", "coalesce({0}, {1})", "The second argument if the first is NULL."),
    Function("nullif", ("any", "any"), "common", "nullif({0}, {1})", "NULL if the arguments are equal, otherwise the first."),
    Function("greatest", ("comparable",), "common", "greatest({*})", "The greatest argument that is not NULL.", variadic=True),
    Function("least", ("comparable",), "common", "least({*})", "The smallest argument that is not NULL.", variadic=True),
)
