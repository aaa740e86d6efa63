"""The limits of HTTP servers that are clients of the gateway."""

from __future__ import annotations

BODY_BYTES_MAX = 4 << 20  # of a request, as of a statement in PostgreSQL's protocol; of a row in a stream of inserts
HEADER_BYTES_MAX = 16 << 10
BODY_S = 30.0  # wait for the next part of a request's body
SLOW_S = 30.0  # wait until a client reads; a slower one is disconnected
IDLE_S = 60  # of a connection without requests
CONNECTIONS_MAX = 2_000  # of a server; further ones are closed at once
HTTP2_STREAMS_MAX = 100  # of one HTTP/2 connection
SESSIONS_IDLE_MAX = 32  # idle sessions of the gateway that are kept for later requests
SESSION_IDLE_S = 60.0  # after which such a session is closed
SESSION_S = 60.0  # after which it is not used again, so that a changed password takes effect
CLOSE_EVERY_S = 1.0  # between two searches for sessions to close
CONNECT_S = 10  # wait for the gateway
NOTICES_MAX = 100  # of a statement, further ones are not shown
NOTICE_CHARACTERS_MAX = 8_000  # of one of them
ROWS_BYTES = 32 << 10  # of rows that are sent together
STOP_S = 3.0  # wait for running requests when the server stops
STOP_POLL_S = 0.02
