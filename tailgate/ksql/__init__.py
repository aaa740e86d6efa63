"""The command `ksql`: a client of ksqlDB's HTTP API with line editing.

    lines ──► texts: whole statements ──► session ──► api: HTTP ──► tables: entities and rows as text

It uses Python's standard library only, and knows statements by their first words, so that it works with any server of the API.
"""
