"""CREATE RECURSIVE VIEW is stored WITH RECURSIVE, so that a view keeps its query under another name."""

from __future__ import annotations

import pytest

from tailgate.engine.ddl import create_view
from tailgate.engine.ddl.alter import move
from tailgate.lake.catalog import Catalog, Change, Table
from tailgate.lake.errors import UndefinedTable
from tailgate.lake.types import INT4, Field
from tailgate.sql.definitions import bind_definition
from tailgate.sql.statements import CreateView, parse

TABLE = Table(
    16384, "folders", (Field("id", INT4, False), Field("parent", INT4)), (0,), stored=True, sql="CREATE TABLE folders (id int, parent int)"
)
QUERY = "SELECT id FROM folders WHERE parent IS NULL UNION SELECT f.id FROM below b JOIN folders f ON f.parent = b.id"


def created(text: str) -> tuple[Catalog, int]:
    catalog = Catalog().apply(Change(put=(TABLE,)))
    statement = parse(text)
    assert isinstance(statement, CreateView)
    view = create_view(statement, text, catalog)
    return catalog.apply(Change(put=(view,))), view.id


def test_a_recursive_view_and_what_it_reads_are_renamed() -> None:
    catalog, id = created(f"CREATE RECURSIVE VIEW below (id) AS {QUERY}")
    assert catalog[id].query == f"WITH RECURSIVE below (id) AS ({QUERY}) SELECT id FROM below"
    for item, name in ((id, "lower"), (TABLE.id, "places")):
        catalog = catalog.apply(move(catalog[item], name, catalog.schema_of(catalog[item]), catalog))
    stored = catalog[id]
    assert stored.query.count("places AS folders") + stored.query.count("places f") == 2
    assert stored.sql == f"CREATE VIEW lower (id) AS {stored.query}"
    assert bind_definition(stored, catalog).columns == stored.columns


def test_positions_in_errors_are_those_in_the_statement() -> None:
    text = "CREATE RECURSIVE VIEW below (id) AS SELECT 1 UNION SELECT id FROM missing JOIN below USING (id)"
    with pytest.raises(UndefinedTable) as error:
        created(text)
    assert error.value.position == text.index("missing")
