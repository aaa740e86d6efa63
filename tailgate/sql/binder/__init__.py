"""The binder: resolves names, types and functions in a syntax tree and returns a plan.

    queries ──► expressions ──► types (overloads, casts)
    writes ───►     │
       └────────────┴──► scope, name_lookup (names of outer queries), grouping (expressions over groups)

Type rules follow PostgreSQL's chapter "Type Conversion". Error messages and positions are those of
its parser.
"""
