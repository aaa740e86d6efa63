"""PostgreSQL's functions over Python values, where DuckDB has no spelling: one module a family, each with a Java twin in the engine.

Importing this package fills `registry.FUNCTIONS`.
"""

from sql.compute import (
    arrays,
    bytestrings,
    casts,
    formats,
    jsonbs,
    mathematics,
    numberformats,
    parsing,
    patterns,
    strings,
    times,
    zones,
)  # fmt: skip

__all__ = [
    "arrays", "bytestrings", "casts", "formats", "jsonbs", "mathematics", "numberformats", "parsing", "patterns", "strings", "times",
    "zones",
]  # fmt: skip
