"""The engine: turns statements into maintained relations.

One statement, CREATE MATERIALIZED VIEW:
1. `sql.statements` and `sql.bind` make it a bound plan.
2. `engine.ddl` makes it a change of the catalog, or an error with SQLSTATE and position.
3. `engine.plan` rewrites the plan and compiles it to a part of the circuit (`engine.plan.circuit.graph`).
4. `engine.runtime` gives the circuit to Spark, backfills the new part while ticks run and, when it is filled,
   makes it visible.

One record, of a Kafka topic:
1. A tick reads it; the source node of its topic decodes it to a row, or makes it a dead letter.
2. Operators and the chains between them turn the row into changes of all relations it affects.
3. The net changes of the tick become one entry of the log.
"""
