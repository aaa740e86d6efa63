"""PostgreSQL's functions over Python values, where DuckDB has no spelling: one module a family, each with a Java twin in the engine.

Importing this package fills `registry.FUNCTIONS`.
"""

from sql.compute import (
    arrays,
    bytestrings,
    casts,
    dateinput,
    formats,
    jsonbedits,
    jsonborder,
    jsonbs,
    likes,
    mathematics,
    numberformats,
    numberinput,
    parsing,
    patterns,
    strings,
    times,
    trigonometry,
    zones,
)  # fmt: skip

__all__ = [
    "arrays",
    "bytestrings",
    "casts",
    "dateinput",
    "formats",
    "jsonbedits",
    "jsonborder",
    "jsonbs",
    "likes",
    "mathematics",
    "numberformats",
    "numberinput",
    "parsing",
    "patterns",
    "strings",
    "times",
    "trigonometry",
    "zones",
]
