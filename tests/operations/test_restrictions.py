"""Conditions of queries that restrict which rows of relations of the schema `tailgate` are computed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from tailgate.gateway.control import Control
from tailgate.gateway.execute.monitoring import restrictions, system_relations
from tailgate.gateway.freshness import rows as freshness
from tailgate.gateway.freshness.lags import History
from tailgate.lake.errors import DivisionByZero
from tailgate.operations.sketch import STEP_S
from tailgate.operations.watch import history
from tailgate.operations.watch.history import HOUR_STEPS, SETTLE_S, Recorder
from tests.wire.live import Live

HOURS = 3
NAMES = ("v", "w", "x")
SINCE = "'2020-01-01 00:00:00+00'::timestamptz"
MOMENT = datetime(2020, 1, 1, tzinfo=timezone.utc)
FRESHNESS, HISTORY = "tailgate.freshness", "tailgate.freshness_history"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    live = Live(tmp_path_factory.mktemp("restrictions") / "lake")
    ids = [live.v.id, *(live.model.create(name).id for name in NAMES[1:])]
    last = int(time.time()) // STEP_S - 1
    for hour in range(HOURS - 1, -1, -1):
        step = last - hour * HOUR_STEPS
        lags = [[id, step, 0, 50.0, {"0": 8, "82": 1}] for id in ids]
        Recorder(live.model.lake, step * STEP_S).reported(lags, ids, (step + 1) * STEP_S + SETTLE_S)
    yield live
    live.close()


class Computation:
    """The restrictions of a statement, and the rows that were computed for each relation."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.restrictions: dict[str, restrictions.Restriction] = {}
        self.computed: dict[str, int] = {}
        rows_of = system_relations.SystemRelations.rows

        def counted(self_: Any, name: str, status: Any, restriction: restrictions.Restriction = restrictions.NONE) -> Any:
            result = rows_of(self_, name, status, restriction)
            self.restrictions[name] = restriction
            self.computed[name] = result.num_rows if isinstance(result, pa.Table) else len(result)
            return result

        monkeypatch.setattr(system_relations.SystemRelations, "rows", counted)


@pytest.fixture
def computation(monkeypatch: pytest.MonkeyPatch) -> Computation:
    return Computation(monkeypatch)


def rows(live: Live, query: str, *values: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        return sorted(connection.execute(query, values or None).fetchall())


@pytest.mark.parametrize(
    ("query", "values", "texts"),
    [
        ("SELECT name FROM tailgate.freshness WHERE name = 'v'", (), {"name": {"v"}}),
        ("SELECT name FROM tailgate.freshness WHERE 'v' = name AND schema = 'public'", (), {"name": {"v"}, "schema": {"public"}}),
        ("SELECT name FROM tailgate.freshness WHERE name = %s", ("w",), {"name": {"w"}}),
        ("SELECT name FROM tailgate.freshness WHERE name IN ('v', 'w') AND name IN ('w', 'x')", (), {"name": {"w"}}),
        ("SELECT name FROM tailgate.freshness WHERE name = %s", (None,), {"name": set()}),
        ("SELECT name FROM tailgate.freshness WHERE name = lower('V')", (), {"name": {"v"}}),
        ("SELECT n FROM (SELECT name AS n FROM tailgate.freshness) AS f WHERE n = 'x' ORDER BY n LIMIT 1", (), {"name": {"x"}}),
        ("SELECT f.name FROM (VALUES ('v')) AS t (n) LEFT JOIN tailgate.freshness f ON f.name = 'v'", (), {}),
        ("SELECT f.name FROM tailgate.freshness f LEFT JOIN tailgate.objectives o ON f.name = 'v'", (), {}),
        ("SELECT f.name FROM tailgate.freshness f LEFT JOIN tailgate.objectives o ON true WHERE f.name = 'v'", (), {"name": {"v"}}),
        ("SELECT f.name FROM tailgate.objectives o RIGHT JOIN tailgate.freshness f ON true WHERE f.name = 'w'", (), {"name": {"w"}}),
        ("SELECT name FROM tailgate.freshness WHERE name = 'v' OR name = 'w'", (), {}),
        ("SELECT name FROM tailgate.freshness WHERE name <> 'v'", (), {}),
        ("SELECT name FROM tailgate.freshness WHERE name = kind", (), {}),
        ("SELECT name FROM tailgate.freshness WHERE name = substr('vwx', (1 + 3 * random())::int, 1) AND false", (), {}),
        ("SELECT count(*) FROM tailgate.freshness HAVING max(name) = 'v'", (), {}),
        ("SELECT a.name FROM tailgate.freshness a, tailgate.freshness b WHERE a.name = 'v' AND b.name = 'w'", (), {}),
        ("WITH f AS (SELECT * FROM tailgate.freshness) SELECT a.name FROM f a, f b WHERE a.name = 'v' AND b.name = 'w'", (), {}),
    ],
)
def test_texts(
    query: str,
    values: tuple[object, ...],
    texts: dict[str, set[str]],
    live: Live,
    computation: Computation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    restricted = rows(live, query, *values)
    assert computation.restrictions["freshness"].texts == texts
    assert computation.computed["freshness"] == sum(name in texts.get("name", NAMES) for name in NAMES)
    monkeypatch.setattr(restrictions, "RESTRICTED", frozenset())
    assert restricted == rows(live, query, *values)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT name FROM tailgate.freshness", "name"),
        ("SELECT count(*) FROM tailgate.freshness", ""),
        ("SELECT 1 FROM tailgate.freshness WHERE kind = 'view' ORDER BY name LIMIT 1", "kind name"),
        ("SELECT DISTINCT name FROM (SELECT name, kind, lag_ms FROM tailgate.freshness) AS f", "name"),
        ("SELECT kind, max(lag_ms) FILTER (WHERE name > 'a') FROM tailgate.freshness GROUP BY kind", "kind lag_ms name"),
        ("SELECT max(max_hour_ms) OVER (PARTITION BY kind ORDER BY lag_ms) FROM tailgate.freshness", "kind lag_ms max_hour_ms"),
        ("SELECT o.name FROM tailgate.freshness f LEFT JOIN tailgate.objectives o ON o.on_name = f.name", "name"),
        ("SELECT f.lag_ms FROM tailgate.objectives o RIGHT JOIN tailgate.freshness f ON o.name = f.name", "lag_ms name"),
        ("SELECT name FROM tailgate.freshness UNION ALL SELECT kind FROM tailgate.objectives o, (VALUES ('x')) AS k (kind)", "name"),
        ("SELECT (SELECT max(lag_ms) FROM tailgate.freshness f WHERE f.name = t.n) FROM (VALUES ('v')) AS t (n)", "lag_ms name"),
    ],
)
def test_columns(query: str, columns: str, live: Live, computation: Computation) -> None:
    rows(live, query)
    assert computation.restrictions["freshness"].columns == set(columns.split())


@pytest.mark.parametrize(
    ("query", "lags"),
    [
        ("SELECT * FROM tailgate.sources", True),
        ("SELECT name FROM tailgate.sources ORDER BY lag", True),
        ("SELECT a.name FROM tailgate.sources a, tailgate.sources b", True),
        ("SELECT name, status FROM tailgate.sources WHERE name = 'v'", False),
        ("SELECT name, lag_ms FROM tailgate.freshness UNION ALL SELECT status, 0 FROM tailgate.sources", False),
        ("SELECT * FROM tailgate.sinks", False),
    ],
)
def test_brokers_are_asked_for_a_query_that_reads_the_lag(query: str, lags: bool, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[bool] = []
    status = Control.status

    async def counted(self: Control, *, lags: bool = True) -> Any:
        requests.append(lags)
        return await status(self, lags=lags)

    monkeypatch.setattr(Control, "status", counted)
    rows(live, query)
    assert requests == [lags]


def test_the_figures_of_windows_that_a_query_reads(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[str] = []
    figures = freshness._figures
    monkeypatch.setattr(freshness, "_figures", lambda window, sketch: computed.append(window) or figures(window, sketch))
    for window in live.serving.freshness.lags.histories.setdefault(live.v.id, History()).windows:
        window.current(time.time()).peak(70.0)
    assert rows(live, "SELECT max_hour_ms, max_day_ms FROM tailgate.freshness WHERE name = 'v'") == [(70, 70)]
    assert computed == ["hour", "day"]


@pytest.mark.parametrize(
    ("condition", "since"),
    [
        (f"at > {SINCE}", MOMENT),
        (f"at >= {SINCE}", MOMENT),
        (f"{SINCE} < at AND at > '2019-01-01'", MOMENT),
        (f"at < {SINCE}", None),
        (f"at = {SINCE}", None),
        ("at > now() - (at - at)", None),
        ("at > clock_timestamp() - interval '1 day'", None),
        ("at > '-infinity'", None),
        ("at > NULL", None),
        ("at + interval '1 day' > now()", None),
    ],
)
def test_moments(condition: str, since: datetime | None, live: Live, computation: Computation, monkeypatch: pytest.MonkeyPatch) -> None:
    query = f"SELECT name, at FROM tailgate.freshness_history WHERE {condition}"
    restricted = rows(live, query)
    assert computation.restrictions["freshness_history"].since.get("at") == since
    monkeypatch.setattr(restrictions, "RESTRICTED", frozenset())
    assert restricted == rows(live, query)


def test_moments_in_the_time_zone_of_the_session(live: Live, computation: Computation) -> None:
    with psycopg.connect(f"{live.dsn} options='-c timezone=Asia/Tokyo'", autocommit=True) as connection:
        connection.execute("SELECT name FROM tailgate.freshness_history WHERE at > '2020-01-01'::timestamp::timestamptz")
    assert computation.restrictions["freshness_history"].since == {"at": MOMENT - timedelta(hours=9)}


def test_the_hours_that_a_query_needs_are_read(live: Live, computation: Computation, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of Parquet has the rows of the relations that the query names, from the hours that it names."""
    read: list[str] = []
    get = live.model.lake.store.get
    monkeypatch.setattr(live.model.lake.store, "get", lambda name: read.append(name) or get(name))
    answer = rows(live, "SELECT name FROM tailgate.freshness_history WHERE name = 'w' AND at > now() - interval '30 minutes'")
    assert answer == [("w",)]
    assert computation.computed["freshness_history"] == 1
    assert 1 <= len([name for name in read if name.startswith(history.NAME)]) <= 2
    assert len(rows(live, "SELECT name FROM tailgate.freshness_history")) == HOURS * len(NAMES)


def test_an_error_of_a_constant_is_that_of_the_query(live: Live, computation: Computation, monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(*arguments: object) -> list[str]:
        raise DivisionByZero("division by zero")

    with monkeypatch.context() as patch:
        patch.setattr(restrictions, "_evaluated", failing)
        assert rows(live, "SELECT name FROM tailgate.freshness WHERE name = 'v'") == [("v",)]
        assert computation.restrictions["freshness"] == restrictions.NONE
    with pytest.raises(psycopg.errors.DivisionByZero):
        rows(live, "SELECT name FROM tailgate.freshness WHERE name = (1 / %s)::text", 0)
