"""PostgreSQL's functions that DuckDB lacks, computed over Python values.

Each module is one family of functions; a class of the engine's Java library computes the same for
Spark. `catalogue.UDFS` has all of them.

    registry                 the table that the other modules register their functions in
    casts, text, numeric,
    time, jsonb, regexp      families of functions
    aggregates               aggregates over all values of a group
"""
