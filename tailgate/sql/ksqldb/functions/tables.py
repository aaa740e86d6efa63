"""Table functions: a query has a row for each of their values, and the row of a record without values is left out.

Source: ksqlDB 0.29, documentation, "Table functions".
"""

from __future__ import annotations

from tailgate.sql.ksqldb.functions.entry import ARRAY, ELEMENT, Function

ROWS = (
    Function("explode", (ARRAY,), ELEMENT, "jsonb_array_elements({0})", "A row for each element of an array.", json=True),
    Function("cube_explode", (ARRAY,), "same", "jsonb_array_elements(try(ksqldb_cube({0})))",
             "A row for each combination of the elements of an array and NULL."),
)  # fmt: skip
