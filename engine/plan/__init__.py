"""Bound plans to circuits: values in, values out; nothing here touches Spark, Kafka or the lake.

One materialized view, by module:
1. `plans` binds its text; `rewrites` brings the plan into the form that is cheapest to keep (`fallible` says what may move).
   `sizes` says how large its inputs were when it was planned, and `estimate` what comes of that.
2. `compile` makes `change.Stream`s of it: operators that keep state, and filters and projections between (`shape` spells them).
3. `digest` tells which operators hold equal state; `nodes` gives each a number for as long as the lake exists.
4. `circuit` puts all items of the catalog together as one `graph.Graph`, with what fills new views.
`sources` does the same for sources: decoder, columns, key. `keys` finds what identifies a row; `explain` and `words` print.
"""
