"""Tests the relation tailgate.freshness of a gateway: its rows, and who sees them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.engine.runtime.ticks.ages import Ages
from tailgate.gateway.freshness.lags import ANSWER_AGE_MAX_MS
from tailgate.lake import control, peers
from tailgate.lake.catalog.schemas import TAILGATE_ID
from tailgate.lake.system_relations import COLUMNS, SUPERUSER_RELATIONS
from tailgate.lake.writer.engines import Announcement
from tailgate.operations.sketch import STEP_S
from tailgate.operations.watch.history import SETTLE_S, Recorder
from testing.engine_process import until
from tests.docs.pages import DOCS
from tests.wire.live import Live
from tests.wire.statements import Statements

PENDING_MS = 3_000
QUERY = re.compile(r"^    (SELECT .*(?:\n    (?!SELECT).+)*)", re.MULTILINE)  # on consecutive lines of a page
RELATION = re.compile(r"\btailgate\.(\w+)")


class Engine:
    """An engine that answers requests for ages. `v` reads the table 1 of the answers, whose oldest write is PENDING_MS old."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.requests: list[int] = []
        self.ages = Ages()
        self.reason: str | None = None
        self.fails = False  # whether its answers are errors
        nothing: Any = lambda *arguments: {}  # noqa: E731
        self._control = Control(Answers(nothing, nothing, nothing, nothing, freshness=self._freshness))
        self._control.start()
        writer = live.model.writer
        Announcement.mine(writer.epoch, self._control.address, self._control.token, None).write(live.model.lake)

    def _freshness(self, after: int, version: int) -> dict[str, Any]:
        self.requests.append(after)
        if self.fails:
            raise OSError("the engine fails")
        version = self.ages.changed(version, control.FRESHNESS_HOLD_S)
        now = time.time_ns() // 1_000_000
        return {
            "version": version,
            "inputs": {id: [now - PENDING_MS, self.reason] for id in self.live.model.lake.catalog().items},
            "failing": [],
            "ticks": [],
        }

    def stop(self) -> None:
        self._control.stop()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    live = Live(tmp_path / "lake")
    yield live
    live.close()


@pytest.fixture
def engine(live: Live) -> Iterator[Engine]:
    engine = Engine(live)
    yield engine
    engine.stop()


def rows(live: Live, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        return connection.execute(query).fetchall()  # type: ignore[call-overload, no-any-return]


def test_a_relation_without_inputs_is_fresh(live: Live, engine: Engine) -> None:
    until(lambda: rows(live, "SELECT lag_ms, unknown FROM tailgate.freshness WHERE name = 'v'") == [(0, None)], 10)
    ((minute, maximum),) = rows(live, "SELECT p95_minute_ms, max_day_ms FROM tailgate.freshness")
    assert minute == maximum == 0
    # the ticks that the gateway has not seen
    assert min(engine.requests) > 0


def test_a_gateway_asks_the_engine_when_something_changes(live: Live, engine: Engine) -> None:
    until(lambda: engine.requests, 10)
    time.sleep(0.5)
    start, before = time.monotonic(), len(engine.requests)
    time.sleep(2)
    idle_s = time.monotonic() - start
    assert len(engine.requests) - before <= idle_s / control.FRESHNESS_HOLD_S + 1
    lags, version = live.gateway.serving.freshness.lags, engine.ages.changed(0, 0)
    engine.ages.due()
    until(lambda: lags.version > version, 10)


def test_a_gateway_does_not_wait_for_the_engine_when_it_ends(live: Live, engine: Engine) -> None:
    until(lambda: len(engine.requests) > 1, 10)
    start = time.monotonic()
    live.gateway.serving.freshness.stop()
    assert time.monotonic() - start < control.FRESHNESS_HOLD_S / 2


def test_the_lag_is_unknown_as_soon_as_the_engine_fails(live: Live, engine: Engine) -> None:
    query = "SELECT lag_ms, unknown FROM tailgate.freshness WHERE name = 'v'"
    until(lambda: rows(live, query) == [(0, None)], 10)
    engine.fails = True
    until(lambda: rows(live, query) == [(None, "the engine does not answer")], ANSWER_AGE_MAX_MS / 1000 - control.FRESHNESS_HOLD_S)


def test_lag_is_unknown_without_an_engine(live: Live) -> None:
    assert rows(live, "SELECT schema, name, kind, lag_ms, unknown FROM tailgate.freshness") == [
        ("public", "v", "materialized view", None, "the engine does not answer")
    ]


def test_other_processes_get_the_lags_by_name(live: Live, engine: Engine) -> None:
    (peer,) = peers.announced(live.model.lake)  # of a gateway that may not know the lag yet
    until(lambda: peers.ask(peer, {"do": "lags"}, 2.0) == {"lags": {"v": 0}}, 10)


def test_the_history(live: Live) -> None:
    """The rows of relations that exist and that the role may read."""
    step, statements = int(time.time()) // STEP_S - 1, Statements(live)
    recorder = Recorder(live.model.lake, step * STEP_S)
    lags = [[id, step, 1, 50.0, {"0": 8, "82": 1}] for id in (live.v.id, 4_000_000)]
    recorder.reported(lags, [live.v.id, 4_000_000], (step + 1) * STEP_S + SETTLE_S, (), {str(live.v.id): [3, 900]})
    recorder.reported([], [live.v.id], (step + 2) * STEP_S + SETTLE_S)  # without an engine, sizes are not known
    history = "FROM tailgate.freshness_history h"
    query = f"SELECT schema, name, kind, extract(epoch FROM at)::bigint, samples, unknown, p50_ms, p95_ms, max_ms {history}"
    first = ("public", "v", "materialized view", step * STEP_S)
    assert rows(live, f"{query} WHERE samples > 0") == [(*first, 9, 1, 0, 50, 50)]
    sizes = "SELECT schema, name, kind, extract(epoch FROM at)::bigint, rows, bytes FROM tailgate.size_history"
    assert rows(live, f"{sizes} WHERE name = 'v' AND at > now() - interval '1 hour'") == [(*first, 3, 900)]
    joined = f"SELECT count(*) {history} JOIN tailgate.freshness f USING (schema, name) WHERE h.at > now() - interval '1 hour'"
    assert rows(live, joined) == [(2,)]
    try:
        with psycopg.connect(live.dsn, autocommit=True) as owner:
            owner.execute("CREATE ROLE ann LOGIN SUPERUSER")
            owner.execute("CREATE ROLE bea LOGIN")
        with psycopg.connect(live.dsn.replace("ann", "bea"), autocommit=True) as reader:
            assert reader.execute(query).fetchall() == reader.execute(sizes).fetchall() == []
    finally:
        statements.stop()


def test_a_role_sees_the_relations_that_it_may_read(live: Live) -> None:
    statements = Statements(live)
    query = "SELECT name FROM tailgate.freshness"
    try:
        with psycopg.connect(live.dsn, autocommit=True) as owner:
            owner.execute("CREATE ROLE ann LOGIN SUPERUSER")
            owner.execute("CREATE ROLE bea LOGIN")
            with psycopg.connect(live.dsn.replace("ann", "bea"), autocommit=True) as reader:
                assert reader.execute(query).fetchall() == []
                owner.execute("GRANT SELECT ON v TO bea")
                until(lambda: reader.execute(query).fetchall() == [("v",)], 10)
    finally:
        statements.stop()


def test_it_joins_other_relations_of_the_system_catalog(live: Live, engine: Engine) -> None:
    until(lambda: engine.requests, 10)
    query = "SELECT f.name, c.relkind FROM tailgate.freshness f JOIN pg_class c ON c.relname = f.name WHERE f.lag_ms >= 0"
    until(lambda: rows(live, query) == [("v", "m")], 10)


def test_the_system_catalog_lists_the_relations(live: Live) -> None:
    """Lists views. A role that may not read one lacks the privilege."""
    listed = "SELECT relname FROM pg_class WHERE relnamespace = 'tailgate'::regnamespace AND relkind = 'v'"
    assert {name for (name,) in rows(live, listed)} == set(COLUMNS)
    columns = "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'tailgate.freshness_history'::regclass"
    assert rows(live, f"{columns} ORDER BY attnum")[3:5] == [("at", "timestamp with time zone"), ("samples", "bigint")]
    views = "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'tailgate'"
    statements = Statements(live)
    try:
        with psycopg.connect(live.dsn, autocommit=True) as owner:
            owner.execute("CREATE ROLE ann LOGIN SUPERUSER")
            owner.execute("CREATE ROLE bea LOGIN")
            assert {name for name, _ in owner.execute(views).fetchall()} == set(COLUMNS)
        with psycopg.connect(live.dsn.replace("ann", "bea"), autocommit=True) as reader:
            assert {name for name, _ in reader.execute(views).fetchall()} == set(COLUMNS) - SUPERUSER_RELATIONS
            for name, privilege, has in (("sources", "SELECT", True), ("sources", "INSERT", False), ("internal_errors", "SELECT", False)):
                assert reader.execute("SELECT has_table_privilege(%s, %s)", (f"tailgate.{name}", privilege)).fetchone() == (has,)
            acl = "SELECT relacl FROM pg_class WHERE oid = %s::regclass"
            for name, shown in (("sources", ["tailgate=arwdDxt/tailgate", "=r/tailgate"]), ("internal_errors", None)):
                assert reader.execute(acl, (f"tailgate.{name}",)).fetchone() == (shown,)
            for missing in (TAILGATE_ID, TAILGATE_ID + 1000):
                assert reader.execute(f"SELECT has_table_privilege({missing}::oid, 'SELECT')").fetchone() == (None,)
    finally:
        statements.stop()


def test_each_relation_has_an_example_that_runs(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        shown = set()
        for page in sorted((DOCS / "operations").glob("*.md")):
            for query in QUERY.findall(page.read_text()):
                connection.execute(query)
                shown |= set(RELATION.findall(query))
    assert COLUMNS.keys() - shown == set()


def test_the_page_lists_the_columns() -> None:
    text = (DOCS / "operations" / "freshness.md").read_text()
    listed = [name for row in re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(field.name for field in COLUMNS["freshness"])
