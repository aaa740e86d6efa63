"""ksqlDB's HTTP API in front of a gateway: Starlette on Hypercorn, over HTTP/1.1 and HTTP/2 (ADR 0016).

    client ──POST /ksql────────► app ──► statements ──► sessions ──PostgreSQL wire──► gateway, dialect ksqldb_http
           ◄── entities ────────
           ──POST /query-stream► app ──► queries ──► forms: header, rows, …, until LIMIT, /close-query or disconnection
           ──POST /inserts-stream, rows ──► inserts ──► acks

Each request runs in a session of the gateway, as the user of its Authorization header. So privileges, limits and the meaning of
statements are those of the gateway. The server keeps no state but open streams and the last commands.

Source: ksqlDB 0.29, documentation, "ksqlDB REST API".
"""
