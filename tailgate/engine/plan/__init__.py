"""Plans are compiled to circuits here, without Spark, Kafka or the lake: values in, values out.

A materialized view passes through these modules:

1. `streams` binds its text, and `rewrites` transforms the plan to one that is cheaper to maintain
   (`sql.plan.may_fail` tells which expressions may move). `sizes` has the input sizes at planning
   time, and `estimate` derives row counts from them.
2. `compile` makes `change.Stream`s of the plan: stateful operators, and filters and projections
   between them, which `steps` writes in Spark SQL.
3. `digest` identifies operators with equal state; `nodes` numbers operators permanently.
4. `circuit` compiles all items of the catalog to one `graph.Graph` of
   `operators` and `decoders`, with inputs for backfills. `sharing` replaces operators with equal
   ones of other views.

`sources` does the same for sources: decoder, columns, key. `keys` finds columns that identify a
row, and `explain` prints plans.
"""
