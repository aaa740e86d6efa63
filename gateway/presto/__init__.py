"""Presto over HTTP, in front of a gateway: what Trino's clients speak, on loopback only and without passwords.

    client ──POST /v1/statement──► http ──► statements ──► backend ──PostgreSQL wire──► gateway
           ◄── page, nextUri ── GET nextUri ── … ── DELETE nextUri cancels

`backend` is buenavista's `Connection`, `Session` and `QueryResult`. Its own front end behind that interface answers a statement with one
document that holds all rows, loses zeros, keeps every session and does not run with today's pydantic; `http` and `statements` are the
adapter in its place: pages, limits, cancel. The user of X-Trino-User signs in to the gateway, whose privileges and limits hold.

Source: Trino, "Client protocol"; buenavista 0.5.0, `core`.
"""
