"""Bound plans to circuits: rewrites, compilation, sharing, fills, EXPLAIN. Values in, values out."""
