"""Tests reads while a relation gets new columns (ALTER SOURCE … REFRESH SCHEMA).

A transaction or cursor that has begun keeps the old columns.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import psycopg.sql
import pytest

from tailgate.gateway.answers.lookups import LOOKUPS_BEFORE
from tailgate.lake.catalog import Item, Subscription, View
from tailgate.lake.readers import subscriptions
from tailgate.lake.types import INT8, TEXT, Field
from tests.gateway.serving.model_lake import ModelLake
from tests.tables.world import Served

OLD = [(1, "a"), (2, "b")]
NEW = [(1, "a", None), (2, "b", None)]


class World:
    def __init__(self, model: ModelLake, served: Served, key: tuple[int, ...] | None) -> None:
        self.model, self.served = model, served
        self.other = model.create("other", {"id": INT8})
        self.item = model.create("users", {"id": INT8, "name": TEXT}, key)
        self.tick(*OLD)

    def tick(self, *rows: tuple[Any, ...]) -> None:
        self.time = self.model.tick({self.item.id: [(row, 1) for row in rows]})
        self.served.reach(self.time)

    def widen(self) -> None:
        """Adds a column to the relation.

        Its views keep their number of columns, as after REFRESH SCHEMA.
        """
        views = [i for i in self.model.writer.catalog.items.values() if isinstance(i, View) and self.item.id in i.depends]
        self.item = replace(self.item, columns=(*self.item.columns, Field(f"more{len(self.item.columns)}", INT8)))
        self.model.put(self.item)
        for view in views:
            self.model.put(replace(view, known_columns={self.item.id: len(view.columns)}))
        self.put()

    def view(self) -> None:
        """Creates or recreates a plain view of all columns."""
        existing = self.model.writer.catalog.find("plain")
        id = self.model.writer.catalog.next_id if existing is None else existing.id
        query = "SELECT * FROM users"
        item = View(id, "plain", self.item.columns, None, stored=False, depends=(self.item.id,))
        self.put(replace(item, sql=f"CREATE VIEW plain AS {query}", query=query))

    def put(self, *items: Item) -> None:
        for item in items:
            self.model.put(item)
        self.time = self.model.writer.newest.time
        self.served.reach(self.time)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.served.dsn, autocommit=True)


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    model = ModelLake(tmp_path / "lake")
    served = Served(model.lake)
    yield World(model, served, request.param if hasattr(request, "param") else (0,))
    served.close()
    model.writer.close()


BOTH = pytest.mark.parametrize("world", [(0,), None], ids=["keyed", "bag"], indirect=True)
READS = [
    ("SELECT * FROM users ORDER BY id", OLD),
    ("TABLE users ORDER BY id", OLD),
    ("SELECT count(*) FROM users", [(2,)]),
    ("SELECT * FROM plain ORDER BY id", OLD),
]

ERRORS = [  # the second error occurs during execution
    (psycopg.errors.UndefinedColumn, "SELECT more2 FROM users"),
    (psycopg.errors.DivisionByZero, "SELECT 1 / (id - 1) FROM users"),
]


@BOTH
@pytest.mark.parametrize("first", ["users", "other"])
@pytest.mark.parametrize("prepare", [False, True])
def test_a_block(world: World, first: str, prepare: bool) -> None:
    """A block keeps its time and the columns of that time.

    With `other`, the relation is first read after it has new columns.
    """
    world.view()
    with world.connect() as mine, world.connect() as theirs:
        mine.execute("BEGIN")
        if first == "users":
            for sql, rows in READS:
                assert mine.execute(sql, prepare=prepare).fetchall() == rows
        else:
            assert mine.execute("SELECT * FROM other").fetchall() == []
        world.widen()
        world.tick((3, "c", 30))
        assert theirs.execute("SELECT * FROM users ORDER BY id").fetchall() == [*NEW, (3, "c", 30)]
        for sql, rows in READS:
            assert mine.execute(sql, prepare=prepare).fetchall() == rows
        for error, sql in ERRORS:
            with pytest.raises(error), mine.transaction():  # uses a savepoint
                mine.execute(sql)
            assert mine.execute("SELECT * FROM users ORDER BY id").fetchall() == OLD
        world.widen()
        world.view()
        assert len(theirs.execute("SELECT * FROM plain").fetchall()[0]) == 4
        assert mine.execute("SELECT * FROM plain ORDER BY id").fetchall() == OLD
        assert mine.execute("SELECT u.*, o.id FROM users u LEFT JOIN other o USING (id) ORDER BY 1").fetchall() == [(*r, None) for r in OLD]
        mine.execute("COMMIT")
        assert mine.execute("SELECT * FROM users ORDER BY id").fetchall() == [(*r, None) for r in [*NEW, (3, "c", 30)]]


@BOTH
def test_cursors(world: World) -> None:
    with world.connect() as mine, world.connect() as theirs:
        mine.execute("DECLARE held CURSOR WITH HOLD FOR SELECT * FROM users ORDER BY id")
        assert mine.execute("FETCH 1 FROM held").fetchall() == OLD[:1]
        mine.execute("BEGIN")
        mine.execute("DECLARE begun CURSOR FOR SELECT * FROM users ORDER BY id")
        mine.execute("DECLARE later CURSOR FOR SELECT * FROM users ORDER BY id")
        mine.execute("DECLARE following CURSOR FOR TAIL users")
        assert mine.execute("FETCH 1 FROM begun").fetchall() == OLD[:1]
        world.widen()
        world.tick((3, "c", 30))
        assert len(theirs.execute("SELECT * FROM users").fetchall()) == 3
        assert mine.execute("FETCH ALL FROM held").fetchall() == OLD[1:]
        assert mine.execute("FETCH ALL FROM begun").fetchall() == OLD[1:]
        assert mine.execute("FETCH ALL FROM later").fetchall() == OLD
        followed = [r[2:] for r in mine.execute("FETCH 2 FROM following WITH (timeout = '5s')").fetchall()]
        followed += [r[2:] for r in mine.execute("FETCH 1 FROM following WITH (timeout = '5s')").fetchall()]
        assert sorted(followed) == [*OLD, (3, "c")]
        mine.execute("COMMIT")
        assert mine.execute("FETCH PRIOR FROM held").fetchall() == OLD[1:]


def test_a_cursor_that_was_declared_first(world: World) -> None:
    """The first FETCH reads the rows, with the columns that the relation had at DECLARE."""
    with world.connect() as mine:
        mine.execute("BEGIN")
        mine.execute("DECLARE c CURSOR FOR SELECT * FROM users ORDER BY id")
        world.widen()
        assert mine.execute("FETCH ALL FROM c").fetchall() == OLD


def test_prepared(world: World) -> None:
    """A prepared statement whose result type would change is refused, as in PostgreSQL; others still work."""
    with world.connect() as mine:
        mine.execute("PREPARE narrow AS SELECT id, name FROM users ORDER BY id")
        mine.execute("PREPARE wide AS SELECT * FROM users ORDER BY id")
        world.widen()
        assert mine.execute("EXECUTE narrow").fetchall() == OLD
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="cached plan must not change result type"):
            mine.execute("EXECUTE wide")


@pytest.mark.parametrize("bound", [False, True])
def test_rows_by_key(world: World, bound: bool) -> None:
    """Frequent look-ups use an index, which must have the columns of the block's time."""
    with world.connect() as mine, world.connect() as theirs:
        theirs.prepare_threshold = None  # uses simple queries

        def ask() -> list[Any]:
            simple, extended = psycopg.sql.SQL("SELECT * FROM users WHERE id = {}"), "SELECT * FROM users WHERE id = %s::int8"
            if not bound:
                return [theirs.execute(simple.format(id)).fetchall() for id in (1, 2, 3)]
            return [mine.execute(extended, [id], prepare=False).fetchall() for id in (1, 2, 3)]

        for _ in range(LOOKUPS_BEFORE):
            assert ask() == [[OLD[0]], [OLD[1]], []]
        world.tick()
        assert ask() == [[OLD[0]], [OLD[1]], []]
        world.widen()
        for _ in range(LOOKUPS_BEFORE):
            assert ask() == [[NEW[0]], [NEW[1]], []]
        world.tick((3, "c", 30))
        for _ in range(LOOKUPS_BEFORE):
            assert ask() == [[NEW[0]], [NEW[1]], [(3, "c", 30)]]


def test_a_subscription(world: World) -> None:
    item = Subscription(
        world.model.writer.catalog.next_id, "feed", depends=(world.item.id,), retention_ms=3_600_000, snapshot=True, progress=False
    )
    subscriptions.begin(world.model.lake, item, world.model.writer.newest.n, world.time)
    world.put(item)
    fetch = "FETCH 1 FROM SUBSCRIPTION feed WITH (timeout = '5s')"
    with world.connect() as mine:
        assert sorted(r[2:] for r in mine.execute(fetch)) == OLD
        world.widen()
        world.tick((3, "c", 30))
        last = mine.execute(fetch).fetchall()
        assert [r[2:] for r in last] == [(3, "c")]
    with world.connect() as mine:
        mine.execute("ACKNOWLEDGE feed UP TO %s", [last[0][0] - 1])
        assert [r[2:] for r in mine.execute(fetch)] == [(3, "c", 30)], "who begins now has what there is"


@BOTH
def test_followers_of_queries(world: World) -> None:
    rows, groups = world.connect(), world.connect()
    of_rows = rows.cursor().stream("TAIL (SELECT * FROM users)")
    of_groups = groups.cursor().stream("TAIL (SELECT name, count(*) FROM users GROUP BY name)")
    assert sorted(next(of_rows)[2:] for _ in OLD) == OLD
    assert sorted(next(of_groups)[2:] for _ in OLD) == [("a", 1), ("b", 1)]
    world.widen()
    world.tick((3, "c", 30))
    assert next(of_rows)[1:] == (1, 3, "c")
    assert next(of_groups)[1:] == (1, "c", 1)
    rows.close()
    groups.close()


def test_concurrent_readers(world: World) -> None:
    """Each answer has one time and the columns of that time, while columns are added and no block is open."""
    ended = threading.Event()
    wrong: list[object] = []

    def read(sql: str) -> None:
        with world.connect() as connection:
            while not ended.is_set():
                try:
                    rows = connection.execute(sql, prepare=False).fetchall()
                except psycopg.Error as error:
                    wrong.append(error)
                    return
                if sorted(r[:2] for r in rows) != OLD or any(v is not None for r in rows for v in r[2:]):
                    wrong.append(rows)

    threads = [threading.Thread(target=read, args=(s,)) for s in ("SELECT * FROM users", "SELECT * FROM users ORDER BY name, id")]
    for thread in threads:
        thread.start()
    for _ in range(30):
        world.widen()
    ended.set()
    for thread in threads:
        thread.join(30)
    assert wrong == []


@BOTH
@pytest.mark.parametrize("first", ["users", "other"])
def test_an_imported_snapshot(world: World, first: str) -> None:
    """A session that imports a snapshot after the relation has new columns reads the rows and columns of the snapshot's time."""
    world.view()
    with world.connect() as mine, world.connect() as theirs:
        mine.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        mine.execute(f"SELECT * FROM {first}")
        (name,) = mine.execute("SELECT pg_export_snapshot()").fetchall()[0]
        world.widen()
        world.tick((3, "c", 30))
        for _ in range(2):
            theirs.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            theirs.execute(f"SET TRANSACTION SNAPSHOT '{name}'")
            for sql, rows in READS:
                assert theirs.execute(sql).fetchall() == rows
            for error, sql in ERRORS:
                with pytest.raises(error), theirs.transaction():
                    theirs.execute(sql)
            theirs.execute("COMMIT")
        mine.execute("COMMIT")
        assert theirs.execute("SELECT * FROM users ORDER BY id").fetchall() == [*NEW, (3, "c", 30)]
