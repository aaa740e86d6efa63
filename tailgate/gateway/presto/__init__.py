"""The Presto protocol over HTTP in front of a gateway, for Trino's clients; loopback only, without passwords.

    client ──POST /v1/statement──► main ──► statements ──► backend ──PostgreSQL wire──► gateway
           ◄── page, nextUri ── GET nextUri ── … ── DELETE nextUri cancels

`backend` implements buenavista's `Connection`, `Session` and `QueryResult`. `main` and `statements`
replace buenavista's own HTTP server and add pages, limits and cancelling. That server returns all
rows in one document, loses zeros, never closes sessions, and does not run with current pydantic.
The user in X-Trino-User signs in to the gateway, whose privileges and limits apply.

Source: Trino, "Client protocol"; buenavista 0.5.0, `core`.
"""
