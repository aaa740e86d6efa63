"""The limits of the HTTP API besides those of `gateway.asgi.limits`."""

from __future__ import annotations

INSERTS_S = 600.0  # wait for the next row of a stream of inserts
REQUESTS_MAX = 200  # requests that run at a time, without streams
RATE_MAX = 10_000  # requests per second; all cores of a machine answer fewer, so that only a client in a loop meets it
STREAMS_MAX = 200  # queries, and streams of inserts, at a time; the gateway limits those of a role
STATEMENTS_MAX = 200  # of one request
SEQUENCE_S = 5.0  # wait for the log entry of commandSequenceNumber
COMMANDS_MAX = 1_000  # commands whose status is kept
