"""Installs a change of the catalog with new views, and waits for their fills."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tailgate.engine.plan.explain import notices as plan_notices
from tailgate.engine.plan.views.streams import Streams
from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.control.control import Client, notice
from tailgate.engine.runtime.control.fill_waits import await_fills
from tailgate.engine.runtime.control.turns import check_canceled
from tailgate.engine.runtime.ticks.engine_log import Changes
from tailgate.engine.runtime.ticks.table_writes import TableWrites
from tailgate.lake.catalog import Change, Item, MaterializedView
from tailgate.lake.log.entry import Header


@dataclass(frozen=True, slots=True)
class Installed:
    """A change that is durable in the entry `header`. `fill`: the views that it fills. `notices`: about their plans."""

    installation: Installation
    header: Header
    fill: tuple[Item, ...]
    notices: list[dict[str, Any]]

    def answer(self, tag: str, client: Client) -> dict[str, Any]:
        """Returns the answer to the statement once the views are filled. On failure or cancellation, drops them and raises."""
        header = self.header
        if self.fill:
            try:
                await_fills(self.installation, self.fill, client)
            finally:
                self.installation.awaited.difference_update(i.id for i in self.fill)
            header = self.installation.engine.newest  # the views are readable from this time on
        return {"tag": tag, "n": header.n, "time": header.time, "notices": self.notices}


def install_filled(
    installation: Installation,
    change: Change,
    client: Client,
    changes: Callable[[], Changes] = tuple,
    written: TableWrites | None = None,
) -> Installed:
    """Installs a change and begins the fills of its new views. The caller holds the lock of the catalog, and then calls `answer`.

    `changes`: as of `Installation.install`. `written`: rows that a tick reads; its entry has the change.
    """
    change = installation.numbered(change)
    fill = tuple(item for item in change.put if not item.ready)
    header = installation.install(change, fill, changes, check=lambda: check_canceled(client), written=written)
    installation.awaited.update(i.id for i in fill)
    streams = Streams(installation.engine.catalog)
    views = [i for i in fill if isinstance(i, MaterializedView)]
    return Installed(installation, header, fill, [notice(n) for item in views for n in plan_notices(item, streams(item))])
