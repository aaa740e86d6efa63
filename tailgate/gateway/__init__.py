"""The PostgreSQL endpoint: sessions over the lake. Imports only `lake`, `sql` and `values`, and uses neither Spark nor Kafka.

The folders, from the bottom up; each imports only those before it:

    resources   memory budgets, limits of concurrent work         results    rows of running statements, TAIL
    protocol    PostgreSQL's wire protocol, without I/O           writes     the evaluation of INSERT, UPDATE, DELETE, COPY
    encode      values to bytes                                   answers    cached results and look-ups by key
    settings    SET, SHOW                                         session    the states of a session, and what sessions share
    security    authentication, TLS, ownership                    execute    the statements by kind
    workers     long computations in other processes              handlers   the messages of the protocol
    catalog     pg_catalog and information_schema                 server     sockets and connections
    mirrors     the lake's relations in memory                    presto     the Presto protocol in front of a gateway
    serving     queries on the mirrors, and their followers       asgi       HTTP servers that are clients of a gateway
                                                                  ksqldb     ksqlDB's HTTP API in front of a gateway
                                                                  console    a web page over SQL

The path of a statement:

1. `server.server` accepts the connection (asyncio, without a thread per client). `server.connection` passes its bytes to `protocol`,
   which splits them into messages.
2. `answers` answers a query that was already answered at this time with cached bytes (`polls`), and a look-up by a key or by the
   columns of a CREATE INDEX from an `index` of rows (`lookups`). In both cases the text is not parsed.
3. Otherwise `handlers.messages` passes the message to `startup`, `simple` or `extended`. They parse the text with `sql.statements`, and
   `handlers.dispatch` has an executor for each kind of statement: SELECT goes to `serving`, or to `catalog` if it reads pg_catalog;
   CREATE and DROP to the engine through `catalog_changes`; SET and BEGIN to `commands`; INSERT, UPDATE, DELETE, TRUNCATE and COPY FROM
   STDIN to `writes`, which evaluates them on the mirrors; `committing` sends the net changes to the engine.
4. `handlers.delivery` sends the result as fast as the client reads. `encode` converts Arrow columns to DataRow or COPY bytes, one
   column at a time.

The path of a follower: `results.tail` reads the log's changes from a time, one batch per tick. It passes them on as plain rows, as COPY
data, or to a cursor that FETCH reads with a timeout. For a subscription (`execute.subscriptions`), the lake stores the acknowledged time.
"""

import os

# DuckDB returns memory to the system when it has been free for 0.2 s, by its background threads (`mirrors.sandbox`). By default it keeps
# its peak memory, so one large statement would use up the gateway's memory for good. With memory that is returned at once, each statement
# gets new pages from the system: an UPDATE of 10 rows takes 0.5 ms in place of 0.25. DuckDB reads the variable once, when it is loaded.
os.environ.setdefault("DUCKDB_JE_MALLOC_CONF", "retain:false,dirty_decay_ms:200,muzzy_decay_ms:0")
