"""WITH RECURSIVE in maintained views: random graphs whose edges come and go, with several partitions and restarts.

After each tick every view is compared with an evaluation round by round. TAILGATE_CASES is the number of graphs.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tailgate.engine.plan.views import nodes
from tailgate.lake.types import INT4, TEXT
from tailgate.lake.types import Field as Column
from testing.random_queries import Row, Table
from testing.views import Straight, Views
from testing.worlds import World

pytestmark = pytest.mark.spark

GRAPHS = int(os.environ.get("TAILGATE_CASES", "3"))
TICKS = 8
NODES = 7
EDGES = Table(16384, "edges", (Column("a", INT4), Column("b", INT4)))
ROOTS = Table(16385, "roots", (Column("r", INT4), Column("name", TEXT)))
V = TypeVar("V", bound=Views)
# views over any graph, and over graphs without cycles
REACHED = {
    "reached": "WITH RECURSIVE t(n) AS (SELECT r FROM roots UNION SELECT b FROM t JOIN edges ON a = n) SELECT n FROM t",
    "pairs": "WITH RECURSIVE t(a, b) AS (TABLE edges UNION SELECT t.a, e.b FROM edges e JOIN t ON t.b = e.a) SELECT * FROM t",
    "distances": """WITH RECURSIVE t AS (SELECT r AS n, 0 AS d FROM roots UNION SELECT e.b, d + 1 FROM t, edges e WHERE e.a = t.n AND d < 3)
                    SELECT n, min(d) AS d, count(*) AS c FROM t GROUP BY n""",
    "unreached": """WITH RECURSIVE t(n) AS (SELECT r FROM roots UNION SELECT b FROM t JOIN edges ON a = n)
                    SELECT DISTINCT a FROM edges WHERE a NOT IN (SELECT n FROM t)""",
    "numbers": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < (SELECT count(*) FROM roots)) SELECT n FROM t",
    "two": """WITH RECURSIVE t(n) AS (SELECT r FROM roots UNION SELECT b FROM t JOIN edges ON a = n),
              u(n) AS (SELECT n FROM t WHERE n > 2 UNION ALL SELECT n - 1 FROM u WHERE n > 0) SELECT n, count(*) AS c FROM u GROUP BY n""",
    "left": """WITH RECURSIVE t(n, name) AS (SELECT r, name FROM roots UNION SELECT b, roots.name FROM t JOIN edges ON a = n
               LEFT JOIN roots ON r = b WHERE NOT EXISTS (SELECT FROM roots q WHERE q.r = b + 1)) SELECT * FROM t""",
    # equal numbers with several display scales, which follow from those of the rows before
    "forms": """WITH RECURSIVE t(n) AS (SELECT r + CASE name WHEN 'x' THEN 0.0 ELSE 0 END FROM roots UNION
                SELECT b + (n - n) * CASE a % 3 WHEN 0 THEN 1 ELSE 1.0 END FROM t JOIN edges ON a = n) SELECT n, n::text AS shown FROM t""",
    "walks": """WITH RECURSIVE t(n, d) AS (SELECT r, 0 FROM roots UNION ALL SELECT b, d + 1 FROM t JOIN edges ON a = n WHERE d < 3)
                SELECT n, d FROM t""",
    "first": """WITH RECURSIVE t(n, d) AS (SELECT r, 0 FROM roots UNION ALL
                SELECT x.b, x.d FROM (SELECT DISTINCT b, d + 1 AS d FROM t JOIN edges ON a = n WHERE d < 4 ORDER BY b LIMIT 2) x)
                SELECT n, d FROM t""",
    "ranked": """WITH RECURSIVE t(n, d) AS (SELECT r, 0::bigint FROM roots UNION
                 SELECT b, row_number() OVER (ORDER BY b) FROM t JOIN edges ON a = n) SELECT n, d FROM t""",
}
PATHS = {
    "paths": """WITH RECURSIVE t(n, p) AS (SELECT r, r::text FROM roots UNION ALL SELECT b, p || b::text FROM t JOIN edges ON a = n)
                SELECT n, p FROM t""",
    "copies": "WITH RECURSIVE t(n) AS (SELECT r FROM roots UNION ALL SELECT b FROM edges JOIN t ON a = n) SELECT n FROM t",
}


class Graph:
    """The rows of a random graph. Kinds: tree, acyclic, any."""

    def __init__(self, source: random.Random, kind: str) -> None:
        self.random, self.kind = source, kind
        self.rows: Counter[tuple[Table, Row]] = Counter()

    def edge(self) -> Row | None:
        r = self.random
        a, b = r.randrange(NODES), r.randrange(NODES)
        if self.kind == "any":
            return a, b
        if a >= b or (self.kind == "tree" and any(t is EDGES and row[1] == b for t, row in self.rows)):
            return None
        return a, b

    def change(self) -> Iterator[tuple[Table, Row, int]]:
        """Yields changes: most of them add or remove one edge."""
        r = self.random
        for _ in range(r.choice([1, 1, 2, 5, 12])):
            present = list(self.rows)
            if present and r.random() < 0.45:
                table, row = r.choice(present)
                yield self._add(table, row, -1)
            elif r.random() < 0.2:
                yield self._add(ROOTS, (r.randrange(NODES), r.choice(["x", None])), 1)
            elif (edge := self.edge()) is not None:
                yield self._add(EDGES, edge, 1)

    def _add(self, table: Table, row: Row, weight: int) -> tuple[Table, Row, int]:
        self.rows[table, row] += weight
        self.rows = +self.rows
        return table, row, weight


def views_of(kind: type[V], session: Any, folder: Path, queries: Mapping[str, str], partitions: int, seed: int = 0) -> V:
    """Returns views with these queries over the tables."""
    world = World(seed, tables=0)
    world.tables = (EDGES, ROOTS)
    views = kind(session, folder, world, partitions)
    add(views, queries)
    return views


def add(views: Views, queries: Mapping[str, str]) -> None:
    assert views.add_all((name, query, None) for name, query in queries.items()) == len(queries)


def check_graph(session: Any, folder: Path, kind: str, number: int) -> None:
    """Compares all views with their queries after each tick of a random graph. Half of them are filled from existing rows."""
    graph = Graph(random.Random(f"{kind} {number}"), kind)
    r, queries = graph.random, list((REACHED if kind == "any" else REACHED | PATHS).items())
    r.shuffle(queries)
    views = views_of(Straight, session, folder, dict(queries[::2]), number % 3 + 1, number)
    try:
        for tick in range(TICKS):
            if tick == 3:
                add(views, dict(queries[1::2]))
            changes = list(graph.change())
            if r.random() < 0.2:
                views.restart()
            if r.random() < 0.2:
                views.lost(changes[: r.randint(0, len(changes))])
            views.tick(changes)
            if r.random() < 0.2:
                views.maintain()
            for name in views.queries:
                try:
                    assert views.compared(name)
                except AssertionError as e:
                    raise AssertionError(f"{kind} {number}, tick {tick}, {views.partitions} partitions: {name}: {e}") from None
        views.tick([(table, row, -n) for (table, row), n in graph.rows.items()])
        assert views.check() == len(views.queries)
        assert views.left() == []
    finally:
        views.end()


@pytest.mark.parametrize("kind", ["tree", "acyclic", "any"])
def test_views_are_their_queries(session: Any, tmp_path: Path, seed: int, kind: str) -> None:
    for number in range(seed * 1000, seed * 1000 + (GRAPHS // 3 or 1)):
        check_graph(session, tmp_path / str(number), kind, number)


def errors(views: Views, name: str) -> list[Row]:
    return sorted(views.rows[views.catalog.relation(name).errors])


@pytest.mark.parametrize("partitions", [1, 2])
def test_rows_that_need_too_many_rounds_are_errors(session: Any, tmp_path: Path, partitions: int) -> None:
    views = views_of(Straight, session, tmp_path, {"copies": PATHS["copies"], "reached": REACHED["reached"]}, partitions)
    views.tick([(ROOTS, (1, "x"), 1), (EDGES, (1, 2), 1), (EDGES, (2, 1), 1)])
    assert errors(views, "copies") == [("54000", 'recursive query "t" needs more than 1000 rounds')]
    assert views.compared("reached")
    views.tick([(EDGES, (2, 1), -1)])
    assert views.check() == 2
    views.end()


def test_rows_with_too_many_copies_are_errors(session: Any, tmp_path: Path) -> None:
    """Each of 40 edges exists twice, so the last node has 2^40 copies."""
    views = views_of(Straight, session, tmp_path, {"copies": PATHS["copies"]}, 1)
    views.tick([(ROOTS, (0, "x"), 1), *((EDGES, (i, i + 1), 2) for i in range(40))])
    assert errors(views, "copies") == [("54000", 'a row of recursive query "t" has more than 2147483648 copies')]
    views.tick([(EDGES, (20, 21), -2)])
    assert views.check() == 1
    assert max(views.rows[views.catalog.relation("copies").id].values()) == 1 << 20
    views.end()


@pytest.mark.parametrize("query", ["reached", "copies"])
def test_a_change_costs_its_descendants(session: Any, tmp_path: Path, query: str) -> None:
    """A tree of 2,000 nodes, each with ten children."""
    views = views_of(Views, session, tmp_path, {query: (REACHED | PATHS)[query]}, 1)
    used = sorted(nodes.nodes_by_digest(views.catalog.relation(query)).values())

    def rows_in() -> int:
        return sum(n.rows_in for node, n in views.circuits.figures(str(views.folder), [], 1).nodes.items() if node in used)

    views.tick([(ROOTS, (0, "x"), 1), *((EDGES, ((i - 1) // 10, i), 1) for i in range(1, 2000))])
    whole = rows_in()
    assert whole > 2000
    views.tick([(EDGES, (1999, 5000), 1)])
    leaf = rows_in() - whole
    assert leaf <= 4
    views.tick([(EDGES, (0, 1), -1)])  # 1, 11 to 20, 111 to 210 and 1111 to 2000 go
    assert rows_in() - whole - leaf < 3 * 1100
    views.tick([(EDGES, (3, 31), -1)])  # 31, and 311 to 320
    assert rows_in() - whole - leaf < 3 * 1100 + 40
