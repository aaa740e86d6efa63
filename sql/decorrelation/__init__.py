"""Subqueries become joins, all of them at once: what `sql.bind` returns has none.

    places ──► quantified (IN, ANY, ALL are EXISTS)
       └─────► joining (EXISTS: semi and anti joins; values and LATERAL: left and inner joins) ──► unnesting

A subquery that reads nothing around it is joined as it is. One that does is pushed down over its closure's arguments (`unnesting`) until
it holds, besides its own columns, the arguments that each of its rows is for; the join is then on those.

    (SELECT max(o.at) FROM orders o WHERE o.user_id = u.id)        for each row of users u
    users u LEFT JOIN (SELECT o.user_id, max(o.at) FROM orders o GROUP BY 1) s ON u.id = s.user_id

Where an equality gives the argument, as here, that is all. Elsewhere a join with the domain puts it there: the distinct arguments of the
rows around.

Source: Neumann, Kemper, "Unnesting Arbitrary Queries", BTW 2015; Neumann, "Improving Unnesting of Complex Queries", BTW 2025.
"""

from sql.decorrelation.places import decorrelate

__all__ = ["decorrelate"]
