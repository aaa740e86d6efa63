"""TERMINATE, PAUSE and RESUME of persistent queries of ksqlDB in the running engine."""

from __future__ import annotations

from typing import Any

from tailgate.engine.ddl.ksqldb import controlled, paused, stopped
from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.backfill.preparation import prepared, replacements_of
from tailgate.engine.runtime.backfill.resuming import missing
from tailgate.engine.runtime.control.control import Client, notice
from tailgate.engine.runtime.control.fill_waits import await_fills
from tailgate.engine.runtime.control.turns import check_canceled, turn
from tailgate.lake.catalog import Change, MaterializedView
from tailgate.lake.catalog.resolution import Resolution
from tailgate.sql.statements import ControlQueries


class KsqldbQueries:
    """Executes these statements. Holds the installation's lock while the catalog changes."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation

    def control(self, statement: ControlQueries, role: int, names: Resolution, client: Client) -> list[dict[str, Any]]:
        """Executes TERMINATE, PAUSE or RESUME. Returns notices.

        RESUME returns when the views of the queries are up to date; views above them are filled again then.
        """
        with turn(self._installation, client):
            catalog = self._installation.engine.catalog.with_resolution(names)
            views = controlled(statement, role, catalog)
            if statement.action != "resume":
                self._installation.planned_anew(stopped(views, catalog, ends=statement.action == "terminate"))
                return []
            views = paused(views, catalog)
            fill = tuple(prepared(self._installation.engine, replacements_of(views, catalog), catalog))
            if not fill:
                return []
            pairs = [(old, new) for old, new in zip(views, fill, strict=True) if isinstance(new, MaterializedView)]
            notices = [notice(text, "01000") for old, new in pairs for text in missing(old, new, catalog)]
            self._installation.install(Change(put=fill), fill, check=lambda: check_canceled(client))
            self._installation.awaited.update(i.id for i in fill)
        try:
            await_fills(self._installation, fill, client)
        finally:
            self._installation.awaited.difference_update(i.id for i in fill)
        return notices
