"""Binds expressions: a syntax tree over a scope becomes a typed scalar."""
