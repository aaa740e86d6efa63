"""The PostgreSQL endpoint: sessions over the lake. Imports lake and sql, knows neither Spark nor Kafka.

What happens to one statement:

1. `server` takes the connection (asyncio, no thread each) and gives the bytes to `protocol`, which cuts them into messages.
2. A text that was polled before at this time is answered by `polls` with bytes that are ready, a look-up by a key or by what
   CREATE INDEX named (`keys`) by `lookups` from an `index` of rows: nothing is parsed.
3. Otherwise `session` gives a message to `starting`, `simple` or `extended`, which ask `sql.statements` what the text says, and
   `routes` who answers: SELECT goes to `serving`, or to `catalog` if it reads pg_catalog; CREATE and DROP to the engine through
   `ddl`; SET, BEGIN, PREPARE and the like to `commands`, DECLARE and FETCH to `cursors`.
   INSERT, UPDATE, DELETE, TRUNCATE and COPY FROM STDIN to `writing`, which evaluates them on the mirrors and sends the engine what changes.
4. `delivery` sends what came of it at the client's pace: `encode` turns Arrow columns into DataRow or COPY bytes, a column at a time.

What happens to a follower: `tail` walks the log's changes from a time, a batch a tick, and hands them to one of three ways
out: plain rows, `copy`, or a cursor (`portals`) that FETCH reads with a timeout. Of a subscription (`subscriptions`)
the lake remembers the time.
"""

import os

# Before DuckDB is loaded, which reads it once: memory that it frees goes back to the system at once. By itself it keeps what it had at
# most, and a gateway would not come back from the first statement that takes much.
os.environ.setdefault("DUCKDB_JE_MALLOC_CONF", "retain:false,dirty_decay_ms:0,muzzy_decay_ms:0")
