"""HTTP servers that are clients of the gateway: uvicorn and Hypercorn, users, and sessions by the PostgreSQL protocol (ADR 0016).

request ──► `access`: the user ──► `sessions`: a connection of this user ──► `rows` ──► `responses`
"""
