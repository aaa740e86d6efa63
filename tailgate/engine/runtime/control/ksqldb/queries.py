"""TERMINATE, PAUSE and RESUME of persistent queries of ksqlDB in the running engine."""

from __future__ import annotations

from tailgate.engine.ddl.ksqldb import controlled, paused, stopped
from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.backfill.preparation import prepared, replacements_of
from tailgate.engine.runtime.control.control import Client
from tailgate.engine.runtime.control.fill_waits import await_fills
from tailgate.engine.runtime.control.turns import check_canceled, turn
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.sql.statements import ControlQueries


class KsqldbQueries:
    """Executes these statements. Holds the installation's lock while the catalog changes."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation

    def control(self, statement: ControlQueries, role: int, names: Resolution, client: Client) -> None:
        """Executes TERMINATE, PAUSE or RESUME. RESUME returns when the views are up to date again."""
        with turn(self._installation, client):
            catalog = self._installation.engine.catalog.with_resolution(names)
            views = controlled(statement, role, catalog)
            if statement.action != "resume":
                self._installation.planned_anew(stopped(views, catalog, ends=statement.action == "terminate"))
                return
            fill = self._coming(paused(views, catalog), catalog)
            if not fill:
                return
            self._installation.install(Change(put=fill), fill, check=lambda: check_canceled(client))
            self._installation.awaited.update(i.id for i in fill)
        try:
            await_fills(self._installation, fill, client)
        finally:
            self._installation.awaited.difference_update(i.id for i in fill)

    def _coming(self, views: tuple[MaterializedView, ...], catalog: Catalog) -> tuple[Item, ...]:
        """Returns replacements of paused views, which read their topics again from the same offsets on.

        Raises 55000 if a topic no longer has the first records that a view was made of: its rows would change without a cause.
        """
        coming = tuple(prepared(self._installation.engine, replacements_of(views, catalog), catalog))
        for old, new in zip(views, coming, strict=True):
            assert isinstance(new, MaterializedView)
            for id, starts in new.starts.items():
                if any(begin > old.starts.get(id, {}).get(partition, begin) for partition, begin in starts.items()):
                    raise ObjectNotInPrerequisiteState(
                        f'the topic of "{catalog[id].name}" no longer has all records that "{old.name}" was made of',
                        hint="DROP it and create it again.",
                    )
        return coming
