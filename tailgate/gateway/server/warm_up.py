"""Fills caches before the first statement: function tables, and parts of the system catalog.

Each takes longer than a slice of the event loop to build, and an abandoned slice caches nothing.
"""

from __future__ import annotations

from tailgate.gateway.serving.prepared import analyzed
from tailgate.lake.catalog import Catalog
from tailgate.sql.statements import Select, parse

TEXTS = (
    "SELECT 1 + 1 AS a, upper('b') || 'c'",
    "SELECT count(*), max(c.oid)::text FROM pg_catalog.pg_class c WHERE c.relname = 'x' AND pg_catalog.pg_table_is_visible(c.oid)",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()",
)


def warm() -> None:
    """Binds some typical statements. Blocks for about 200 ms."""
    catalog = Catalog()
    for text in TEXTS:
        statement = parse(text)
        assert isinstance(statement, Select)
        analyzed(statement.query, (), catalog, 0)
