"""Binds queries: SELECT, VALUES, set operations, WITH and the items of FROM."""
