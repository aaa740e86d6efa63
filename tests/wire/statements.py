"""An engine that executes statements without Spark.

The control interface and the changes of the catalog are those of the real engine.
"""

from __future__ import annotations

import threading
from typing import Any

from tailgate.engine.runtime.control.blocks.commits import Commits
from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.engine.runtime.control.entry_stream import EntryStream
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.writer.engines import Announcement
from tests.sparkless import Engine, WithoutKafka
from tests.wire.live import Live


class Statements:
    """An engine without Spark. Views that it creates are ready at once and stay empty.

    `seen` records the statements received, each with the resolution of its names.
    """

    def __init__(self, live: Live) -> None:
        self._live = live
        self.seen: list[tuple[str, Resolution]] = []
        lake_writer = live.model
        self._statements = WithoutKafka(Engine(lake_writer.lake, lake_writer.writer, threading.RLock()), fills=False)
        status = {"sources": {}, "views": {}, "sinks": {}, "ticks": 0}
        self._control = Control(
            Answers(
                self._statement,
                EntryStream(lake_writer.lake.log).serve,
                lambda lags: status,
                lambda *_: {},
                plan=self._statements.planning.plan_in_block,
                block=Commits(self._statements.installation, None),  # type: ignore[arg-type]  # blocks without rows
            )
        )
        self._control.start()
        Announcement.mine(lake_writer.writer.epoch, self._control.address, self._control.token, None).write(lake_writer.lake)

    def _statement(self, sql: str, settings: dict[str, str], resolution: Resolution, client: Any) -> dict[str, Any]:
        self.seen.append((sql, resolution))
        return self._statements.execute(sql, settings, resolution, client)

    def stop(self) -> None:
        self._control.stop()
