"""Runs queries on the lake's relations in memory, and streams their changes.

How a SELECT runs:

1. `prepared` binds it against the catalog at the mirrors' time (sql.bind) and renders DuckDB SQL
   (sql.render.duckdb). Both results are cached.
2. `gateway.mirrors` keeps each queried relation as a DuckDB table (`mirror`). A mirror is filled at its
   first use; each new log entry then updates all mirrors in one transaction. `wake` reports new log
   entries, `entries` reads each entry once for the whole process. Only an `Authorized` query runs:
   `sql.authorization` has checked the privileges of the role.
3. `jobs` runs the DuckDB SQL on a thread, interruptibly, in the `mirrors.sandbox`. Inside BEGIN it runs in
   the transaction of a `mirrors.snapshots.Snapshot`.
4. `failures` translates DuckDB's errors to PostgreSQL's. If the errors of a view sum above zero,
   the query fails with one of them.

How a TAIL runs: `following.follow` walks the log from a time; `feeds` computes what each entry
changes in a relation or in the result of a query.
"""
