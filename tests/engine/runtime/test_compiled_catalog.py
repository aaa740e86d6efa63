"""The catalog that an engine compiles while it stands by: the engine that continues with it compiles nothing more."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.compiled_catalog import CompiledCatalog
from tailgate.engine.runtime.control.statements import Statements
from tailgate.engine.runtime.standing_by import Awaited, awaited
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.catalog.secrets import Vault
from tailgate.lake.folder import Lake
from tailgate.lake.writer.engines import lease
from tailgate.lake.writer.log_writer import open_epoch
from testing.engine_process import until

pytestmark = pytest.mark.spark

TABLES = ("CREATE TABLE t (a int PRIMARY KEY, b text)", "CREATE MATERIALIZED VIEW v AS SELECT b, count(*) FROM t WHERE a > 1 GROUP BY b")
LATER = "CREATE MATERIALIZED VIEW w AS SELECT b, sum(a) FROM t WHERE a < 7 GROUP BY b"


class Running:
    """An engine whose ticks run in a thread. `circuits`: those of an engine that stood by."""

    def __init__(self, location: str, session: Any, circuits: Any = None) -> None:
        lake = Lake(location)
        self._writer = open_epoch(lake, take_over=False)
        self.engine = Engine(lake, session, self._writer, 1, circuits=circuits)
        self._installation = Installation(self.engine)
        self._statements = Statements(self.engine, self._installation)
        self._installation.recover()
        self._thread = threading.Thread(target=self.engine.run)
        self._thread.start()

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self._statements.execute_own(statement)

    def check_changes_beside_the_circuit(self) -> None:
        """Checks that a change of the catalog that no tick depends on leaves the circuit as it is, and that its copy is written later."""
        engine, circuit = self.engine, self.engine.runner.circuit
        self.execute("CREATE VIEW p AS SELECT a FROM t", "DROP VIEW p")
        assert engine.runner.circuit is circuit
        until(lambda: engine.newest.catalog_version in engine.lake.catalog_copies.versions())

    def stop(self) -> None:
        self.engine.stop()
        self._thread.join()
        self._writer.close()


def test_the_engine_compiles_nothing_more(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view is created while the engine stands by. The views are then maintained as before."""
    location = Lake.create(tmp_path / "lake").location
    first = Running(location, session)
    first.execute(*TABLES)
    first.check_changes_beside_the_circuit()
    waiting = Lake(location)
    catalog = CompiledCatalog(waiting, session, 1, Vault())
    newest = waiting.log.look()
    assert newest is not None
    catalog.update()
    assert catalog.version == newest.catalog_version
    with catalog.updated():
        first.execute(LATER)
        newest = waiting.log.look()
        assert newest is not None
        until(lambda: catalog.version == newest.catalog_version)
    first.stop()

    shapes = dict(catalog.circuits._shapes)
    assert shapes
    added: list[Any] = []
    monkeypatch.setattr(catalog.circuits, "_operator", added.append)
    second = Running(location, session, catalog.circuits)
    assert second.engine.circuits is catalog.circuits
    assert (catalog.circuits._shapes, added) == (shapes, [])
    monkeypatch.undo()
    second.execute("CREATE MATERIALIZED VIEW x AS SELECT b, max(a) FROM t GROUP BY b")
    second.stop()


def test_a_catalog_that_cannot_be_compiled(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The engine still stands by, and tries once for each version of the catalog."""
    lake = Lake.create(tmp_path / "lake")
    first = Running(lake.location, session)
    first.execute(*TABLES)
    first.stop()
    catalog = CompiledCatalog(lake, session, 1, Vault())
    monkeypatch.setattr(catalog.circuits, "_operator", lambda _: 1 / 0)
    lake.log.look()
    for _ in range(2):
        catalog.update()
    errors = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert errors == ["the catalog could not be compiled before this engine begins"]
    monkeypatch.undo()
    second = Running(lake.location, session, catalog.circuits)
    second.stop()


def test_the_lease_is_renewed_while_work_in_advance_ends(session: Any, tmp_path: Path) -> None:
    """A download takes minutes. Without a lease, another engine that stands by would begin meanwhile."""
    lake = Lake.create(tmp_path / "lake")
    running = open_epoch(Lake(lake.location))
    working, gate = threading.Event(), threading.Event()

    class Slow(CompiledCatalog):
        def update(self) -> None:
            if threading.current_thread().name == "catalog":
                working.set()
                gate.wait()

    jvm: Any = SimpleNamespace(scratch=tmp_path)
    results: list[Awaited] = []
    catalog = Slow(lake, session, 1, Vault())
    waiting = threading.Thread(target=lambda: results.append(awaited(lake, session, jvm, catalog, lambda: None, hand_over=False)))
    waiting.start()
    assert working.wait(60)
    running.close()
    try:
        until(lambda: lease(lake) is not None)
        before = lease(lake)
        until(lambda: lease(lake) != before)
        assert not results
    finally:
        gate.set()
        waiting.join()
        results[0].lease.end()
        results[0].place.close()
        results[0].writer.close()
