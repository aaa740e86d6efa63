"""Statements of ksqlDB: the columns of those that are valid, and the errors of the others, as ksqldb_statements.txt has them.

    statement => columns (key)
    statement => SQLSTATE position message

The others read the streams and tables of the first statements. `TAILGATE_UPDATE=1` writes the results.
"""

from __future__ import annotations

import os
from pathlib import Path

from tailgate.engine.ddl.ksqldb import declared_source, derived_view
from tailgate.lake.catalog import Catalog, Change
from tailgate.lake.errors import TailgateError
from tailgate.sql.ksqldb.statements import CreateAs, CreateItem
from tailgate.sql.statements import CreateKsqldbItem, parse
from tests.engine.ddl.ksqldb_items import ENDPOINTS, Schemas

FILE = Path(__file__).with_name("ksqldb_statements.txt")
READ = "CREATE TABLE win "  # a derived table that later statements read
ARROW = "\n    => "


def result(text: str, catalog: Catalog) -> tuple[str, Catalog]:
    """Returns the result of a statement as the file has it, and the catalog; with the item if the statement declares one."""
    try:
        parsed = parse(text, "ksqldb")
        assert isinstance(parsed, CreateKsqldbItem)
        statement = parsed.statement
        if isinstance(statement, CreateItem):
            items = declared_source(statement, text, catalog, Schemas(), ENDPOINTS)  # type: ignore[arg-type]  # a registry for tests
            return "declared", catalog.apply(Change(put=items))
        assert isinstance(statement, CreateAs)
        view = derived_view(statement, text, catalog, "latest", Schemas(), ENDPOINTS)
    except TailgateError as error:
        return f"{error.sqlstate} {error.position} {error.message}", catalog
    assert view.ksqldb is not None
    if text.startswith(READ):
        catalog = catalog.apply(Change(put=(view,)))
    columns = ", ".join(f"{c.name} {c.type}" for c in view.columns if c.name not in ("rowtime", "rowpartition", "rowoffset", "_arrival"))
    return f"{columns} ({', '.join(view.ksqldb.message_key)})", catalog


def test_statements() -> None:
    statements = [entry.partition(ARROW) for entry in FILE.read_text().split("\n\n") if entry.strip()]
    catalog, results = Catalog(), []
    for text, _, _ in statements:
        shown, catalog = result(text.strip(), catalog)
        results.append(f"{text.strip()}{ARROW}{shown}")
    if os.environ.get("TAILGATE_UPDATE"):
        FILE.write_text("\n\n".join(results) + "\n")
    assert [f"{text.strip()}{arrow}{shown.strip()}" for text, arrow, shown in statements] == results
