"""The limits of the HTTP API."""

from __future__ import annotations

BODY_BYTES_MAX = 4 << 20  # of a request, as of a statement in PostgreSQL's protocol; of a row in a stream of inserts
HEADER_BYTES_MAX = 16 << 10
BODY_S = 30.0  # wait for the next part of a request's body
INSERTS_S = 600.0  # wait for the next row of a stream of inserts
SLOW_S = 30.0  # wait until a client reads; a slower one is disconnected
IDLE_S = 60  # of a connection without requests
REQUESTS_MAX = 200  # requests that run at a time, without streams
STREAMS_MAX = 200  # queries, and streams of inserts, at a time; the gateway limits those of a role
HTTP2_STREAMS_MAX = 100  # of one HTTP/2 connection
STATEMENTS_MAX = 200  # of one request
SESSIONS_IDLE_MAX = 32  # idle sessions of the gateway that are kept for later requests
SESSION_IDLE_S = 60.0  # after which such a session is closed
CONNECT_S = 10  # wait for the gateway
SEQUENCE_S = 5.0  # wait for the log entry of commandSequenceNumber
COMMANDS_MAX = 1_000  # commands whose status is kept
ROWS_BYTES = 32 << 10  # of rows that are sent together
STOP_S = 3.0  # wait for running requests when the server stops
