"""Runs queries on the lake's relations in memory, and streams their changes.

How a SELECT runs:

1. `binder` binds it against the catalog at the mirrors' time (sql.bind) and renders DuckDB SQL
   (sql.render.duckdb). The result is a cached `prepared.Prepared`.
2. `gateway.mirrors` keeps each queried relation as a DuckDB table (`mirror`). A mirror is filled at its
   first use; each new log entry then updates all mirrors in one transaction. `wake` reports new log
   entries, `entries` reads each entry once for the whole process. Only an `Authorized` query runs:
   `sql.authorization` has checked the privileges of the role.
3. `queries` runs the DuckDB SQL on a thread of `jobs`, interruptibly, in the `mirrors.sandbox`. Inside BEGIN it runs in
   the transaction of a `mirrors.snapshots.Snapshot`.
4. `progress` is the position of the mirrors: their time, and waiting for a later one.
5. `failures` translates DuckDB's errors to PostgreSQL's. If the errors of a view sum above zero,
   the query fails with one of them.

How a TAIL runs: `followers` shares feeds; `following.follow` walks the log from a time; `feeds` computes what each entry
changes in a relation or in the result of a query.
"""
