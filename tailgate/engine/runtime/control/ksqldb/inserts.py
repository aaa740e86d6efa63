"""INSERT INTO … VALUES of ksqlDB in the running engine.

into a declared stream or table  ──► a message in its topic
into a derived stream            ──► a row of its table (`engine.ddl.ksqldb.inserted_rows`) ──► inbox ──► tick
"""

from __future__ import annotations

from tailgate.engine.ddl.ksqldb import derived_stream, with_table
from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.control.control import Client
from tailgate.engine.runtime.control.ksqldb.items import KsqldbItems
from tailgate.engine.runtime.control.turns import check_canceled, turn
from tailgate.lake.catalog import Change, MaterializedView
from tailgate.lake.catalog.dropping import inserted_rows
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.log.entry import stream
from tailgate.lake.writer.inbox import TABLE, Record
from tailgate.sql.ksqldb.statements import InsertValues


class KsqldbInserts:
    """Executes INSERT INTO … VALUES. Thread safe."""

    def __init__(self, installation: Installation, items: KsqldbItems) -> None:
        self._installation, self._items = installation, items

    def insert(self, statement: InsertValues, names: Resolution, client: Client) -> list[MaterializedView]:
        """Inserts the row durably. Returns the views that are filled again, because a derived stream gets its first row."""
        engine = self._installation.engine
        if derived_stream(statement, engine.catalog.with_resolution(names)) is None:
            self._items.insert(statement, engine.catalog.with_resolution(names))
            return []
        with turn(self._installation, client):
            target = derived_stream(statement, engine.catalog.with_resolution(names))
            assert target is not None
            row, change = self._items.row(statement, target), with_table(target, engine.catalog, statement.position)
            again = self._installation.planned_anew(change, check=lambda: check_canceled(client)) if change != Change() else []
            table = inserted_rows(engine.catalog.expect(MaterializedView, target.id), engine.catalog)
            assert table is not None
            engine.confirm(engine.enter([Record(f"{TABLE}{table.id}", b"", stream(row))]))
        return again
