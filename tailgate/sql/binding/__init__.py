"""The binder: resolves names, types and functions in a syntax tree and returns a plan.

    queries ──► scope (names) ──► expressions ──► resolution (functions) ──► coercion (casts)
       ├──► grouping (expressions over groups)
       └──► levels (names of outer queries), routines (the bodies of SQL functions)

Type rules follow PostgreSQL's chapter "Type Conversion". Error messages and positions are those of
its parser.
"""
