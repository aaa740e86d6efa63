"""Table functions: a query has a row for each of their values, and the row of a record without values is left out.

Source: ksqlDB 0.29, documentation, "Table functions".
"""

from __future__ import annotations

from tailgate.sql.ksqldb.functions.entry import ARRAY, ELEMENT, Function

ROWS_OF, COUNT_OF = "ksqldb_array_elements", "jsonb_array_length"  # the rows of an array, and their number

ROWS = (
    Function("explode", (ARRAY,), ELEMENT, f"{ROWS_OF}({{0}})", "A row for each element of an array.", json=True),
    Function("cube_explode", (ARRAY,), "same", f"{ROWS_OF}(try(ksqldb_cube({{0}})))",
             "A row for each combination of the elements of an array and NULL."),
)  # fmt: skip
