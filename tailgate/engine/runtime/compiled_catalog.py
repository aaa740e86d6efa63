"""The catalog of a lake, compiled by an engine that stands by, so that its first tick does not wait for it.

    look at the log ──► newest entry with another version of the catalog ──► circuit, with compiled expressions

When the engine begins, it compiles the later changes only.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession

from tailgate.engine.plan.views import catalog_graph
from tailgate.engine.plan.views.streams import Streams
from tailgate.engine.runtime.spark.circuits import Circuits
from tailgate.lake.catalog.secrets import Vault, settings
from tailgate.lake.folder import Lake

LOOK_S, LOOKS = 1.0, 20  # between two looks at the log: a second, at least so many times `Store.look_s`: 10 s in a bucket

log = logging.getLogger("tailgate.engine")


class CompiledCatalog:
    """The circuit of a lake's catalog. `circuits`: has built it, for the engine to continue with. `version`: of the catalog."""

    def __init__(self, lake: Lake, session: SparkSession, parallelism: int, vault: Vault) -> None:
        self.circuits = Circuits(session)
        self.version = 0
        self._lake, self._session, self._parallelism, self._vault = lake, session, parallelism, vault

    def update(self) -> None:
        """Compiles the newest catalog that this process has seen. If it fails, the engine does so when it begins."""
        newest = self._lake.log.seen
        if newest is None or newest.catalog_version == self.version:
            return
        try:
            catalog = self._lake.catalog_at(newest.n)
            graph = catalog_graph.compile_catalog(catalog, Streams(catalog))
            circuit = self.circuits.build(graph, (), lambda access: self._vault.opened(settings(access, catalog)))
            self.circuits.warm(circuit, self._parallelism)
        except Exception:
            log.exception("the catalog could not be compiled before this engine begins")
        self.version = newest.catalog_version

    @contextmanager
    def updated(self, also: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Follows the catalog until the block ends. `also`: called after each look at the log."""
        ended = threading.Event()

        def run() -> None:
            while not ended.wait(max(LOOK_S, LOOKS * self._lake.store.look_s)):
                with suppress(OSError):
                    self._lake.log.look()
                self.update()
                also()

        thread = threading.Thread(target=run, name="catalog", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
