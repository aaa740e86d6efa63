"""Plans are compiled to circuits here, without Spark, Kafka or the lake: values in, values out.

A materialized view passes through these modules:

1. `views.streams` binds its text, and `rewrites` transforms the plan to one that is cheaper to
   maintain (`sql.plan.may_fail` tells which expressions may move). `views.sizes` has the input
   sizes at planning time, and `analysis.estimate` derives row counts from them. `views.shared_joins`
   chooses the joins that views with different filters share.
2. `rules.compile` makes `rules.change.Stream`s of the plan: stateful operators, and filters and
   projections between them, which `circuit.steps` writes in Spark SQL.
3. `views.digest` identifies operators with equal state; `views.nodes` numbers operators
   permanently.
4. `views.catalog_graph` compiles all items of the catalog to one `circuit.graph.Graph` of
   `operators` and `decoders`, with inputs for backfills. `views.sharing` replaces operators with
   equal ones of other views.

`sources` does the same for sources: decoder, columns, key. `analysis.keys` finds columns that
identify a row, and `explain` prints plans.
"""
