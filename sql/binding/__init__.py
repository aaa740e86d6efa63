"""Binding: names, types and functions in a tree get their meaning.

    queries ──► scope (what names mean here) ──► expressions ──► resolution (which function) ──► coercion (which casts)
       ├──► grouping (what stands above GROUP BY)
       └──► levels (queries further out; the bodies of functions: routines)

Rules of types are PostgreSQL's: chapter "Type Conversion". Messages and positions are those of its parser.
"""
