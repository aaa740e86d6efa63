"""Looks at the lake for the engine that answers a gateway's requests, and for one that stands by."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tailgate.lake.folder import Lake
from tailgate.lake.writer import engines
from tailgate.lake.writer.stand_by import standing_by


@dataclass(frozen=True, slots=True)
class Look:
    """The announcement of the engine, if there is one, and whether another engine stands by."""

    engine: engines.Announcement | None
    stands_by: bool

    def has_next(self, engine: engines.Announcement | None) -> bool:
        """Returns whether an engine follows this one, now or soon."""
        return self.stands_by or self.is_later(engine)

    def is_later(self, engine: engines.Announcement | None) -> bool:
        """Returns whether an engine that follows this one is announced."""
        return self.engine is not None and (engine is None or self.engine.epoch > engine.epoch)


class EngineLooks:
    """Looks by a thread, because the lake may be in a bucket. Tasks that wait for an engine at the same time share them."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._running: asyncio.Future[Look] | None = None

    async def look(self) -> Look:
        if self._running is None:
            self._running = asyncio.ensure_future(asyncio.to_thread(_look, self._lake))
            self._running.add_done_callback(self._done)
        return await asyncio.shield(self._running)

    def _done(self, look: asyncio.Future[Look]) -> None:
        self._running = None
        if not look.cancelled():
            look.exception()  # the tasks that wait raise it; there may be none any more


def _look(lake: Lake) -> Look:
    engine = engines.announced(lake)  # first: an engine that begins announces itself before it leaves the place of the one that stands by
    return Look(engine, standing_by(lake))
