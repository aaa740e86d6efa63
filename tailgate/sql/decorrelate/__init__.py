"""Rewrites all subqueries of a plan as joins, so plans from `sql.bind` contain none.

    places ──► quantified (IN, ANY, ALL are EXISTS)
       └─────► joining (EXISTS: semi and anti joins; values and LATERAL: left and inner joins) ──► unnesting

The arguments of a subquery are the values that it reads from outer queries. A subquery without
arguments is joined unchanged. A correlated one is rewritten by `unnesting`: it gets additional
columns that hold, for each row, the arguments to which the row belongs. The join compares these
columns with the outer row.

    (SELECT max(o.at) FROM orders o WHERE o.user_id = u.id)        for each row of users u
    users u LEFT JOIN (SELECT o.user_id, max(o.at) FROM orders o GROUP BY 1) s ON u.id = s.user_id

If an equality supplies the argument, as in this example, nothing else is needed. Otherwise the
subquery is joined with the domain, which is the distinct arguments of the outer rows.

Source: Neumann, Kemper, "Unnesting Arbitrary Queries", BTW 2015; Neumann, "Improving Unnesting of
Complex Queries", BTW 2025.
"""

from tailgate.sql.decorrelate.subqueries import decorrelate

__all__ = ["decorrelate"]
