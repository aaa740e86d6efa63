"""An engine for statements alone: the real control interface and the real changes of the catalog, without Spark."""

from __future__ import annotations

import threading
from typing import Any

from engine.runtime.control import Control
from lake.engines import Announcement
from lake.resolution import Resolution
from tests.sparkless import Engine, WithoutKafka
from tests.wire.live import Live


class Statements:
    """A materialized view that is created here is ready and stays empty. `seen`: what came, and what its names mean."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self.seen: list[tuple[str, Resolution]] = []
        made = live.made
        self._statements = WithoutKafka(Engine(made.lake, made.writer, threading.RLock()), fills=False)
        status = {"sources": {}, "views": {}, "sinks": {}, "ticks": 0}
        self._control = Control(self._statement, self._statements.newest, lambda: status, lambda body: {})
        self._control.start()
        Announcement.mine(made.writer.epoch, self._control.address, self._control.token, None).write(made.lake)

    def _statement(self, sql: str, settings: dict[str, str], resolution: Resolution, client: Any) -> dict[str, Any]:
        self.seen.append((sql, resolution))
        return self._statements.execute(sql, settings, resolution, client)

    def stop(self) -> None:
        self._control.stop()
