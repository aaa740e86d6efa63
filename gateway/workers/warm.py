"""What the first statements would make, made before they come: tables of functions, forms of the system catalog.

Each takes longer than a slice of the event loop, and work that is abandoned there remembers nothing.
"""

from __future__ import annotations

from gateway.serving.prepared import analyzed
from lake.catalog import Catalog
from sql.statements import Select, parse

TEXTS = (
    "SELECT 1 + 1 AS a, upper('b') || 'c'",
    "SELECT count(*), max(c.oid)::text FROM pg_catalog.pg_class c WHERE c.relname = 'x' AND pg_catalog.pg_table_is_visible(c.oid)",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()",
)


def warm() -> None:
    """Blocks for some 200 ms."""
    catalog = Catalog()
    for text in TEXTS:
        statement = parse(text)
        assert isinstance(statement, Select)
        analyzed(statement.query, (), catalog, 0)
