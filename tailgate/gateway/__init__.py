"""The PostgreSQL endpoint: sessions over the lake. Imports only `lake` and `sql`, and uses neither Spark nor Kafka.

The path of a statement:

1. `server` accepts the connection (asyncio, without a thread per client). `connection` passes its bytes to `protocol`, which splits
   them into messages.
2. `polls` answers a query that was already answered at this time with cached bytes. `lookups` answers a look-up by a key or by the
   columns of a CREATE INDEX (`keys`) from an `index` of rows. In both cases the text is not parsed.
3. Otherwise `session` passes the message to `starting`, `simple` or `extended`. They parse the text with `sql.statements`, and
   `routes` dispatches each statement: SELECT to `serving`, or to `catalog` if it reads pg_catalog; CREATE and DROP to the engine
   through `ddl`; SET, BEGIN, PREPARE and the like to `commands`; DECLARE and FETCH to `cursors`. INSERT, UPDATE, DELETE, TRUNCATE
   and COPY FROM STDIN go to `writing`, which evaluates them on the mirrors and sends the net changes to the engine.
4. `delivery` sends the result as fast as the client reads. `encode` converts Arrow columns to DataRow or COPY bytes, one column at
   a time.

The path of a follower: `tail` reads the log's changes from a time, one batch per tick. It passes them on as plain rows, as COPY data
(`copying`), or to a cursor (`portals`) that FETCH reads with a timeout. For a subscription (`subscriptions`), the lake stores the
acknowledged time.
"""

import os

# Makes DuckDB return freed memory to the system immediately. By default it keeps its peak memory, so one large statement would use up
# the gateway's memory for good. DuckDB reads the variable once, when it is loaded.
os.environ.setdefault("DUCKDB_JE_MALLOC_CONF", "retain:false,dirty_decay_ms:0,muzzy_decay_ms:0")
