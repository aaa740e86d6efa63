"""Definitions are bound and compiled once for all catalogs in which they mean the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tailgate.engine import ddl
from tailgate.engine.plan.rules import compile
from tailgate.engine.plan.views.sizes import with_scan_sizes
from tailgate.engine.plan.views.streams import Streams
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, known_columns
from tailgate.sql import definitions
from tailgate.sql.bind import bind_query
from tailgate.sql.definition_cache import DefinitionCache
from tailgate.sql.definitions import bind_definition
from tailgate.sql.plan import Query
from tests.engine.ddl.test_schemas import Names

VIEWS = 200
QUERIES = (
    "SELECT x, count(*) AS n FROM t WHERE x > {n} GROUP BY x",
    "SELECT t.x, u.y FROM t JOIN u ON t.x = u.x WHERE u.y <> {n}",
    "SELECT x FROM p WHERE x < {n}",
)


def bound_anew(item: Item, catalog: Catalog) -> Query:
    return bind_query(item.query, catalog.stored, view=True, widths=known_columns(item))


def compile_all(catalog: Catalog) -> None:
    """Compiles all views, as each change of the circuit does."""
    streams = Streams(catalog)
    for view in catalog.each(MaterializedView):
        streams(view)


@contextmanager
def counted(patch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yields the texts of the definitions that are bound, and "" for each plan that is compiled."""
    seen: list[str] = []
    compiled = compile.stream
    with patch.context() as patched:
        patched.setattr(definitions, "bind_query", lambda text, *args, **named: seen.append(str(text)) or bind_query(text, *args, **named))
        patched.setattr(compile, "stream", lambda *args: seen.append("") or compiled(*args))
        yield seen


@pytest.fixture
def names() -> Names:
    made = Names()
    made("CREATE TABLE t (x int)", "CREATE TABLE u (x int, y int)", "CREATE VIEW p AS SELECT x FROM t UNION ALL SELECT y FROM u")
    return made


def test_a_statement_binds_and_compiles_only_what_it_changes(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 200 views, creating one view bound and compiled each of the others twice."""
    for number in range(VIEWS):
        names(f"CREATE MATERIALIZED VIEW v{number} AS {QUERIES[number % 3].format(n=number)}")
    compile_all(names.catalog)
    for text in ("CREATE MATERIALIZED VIEW last AS SELECT x FROM v0", "CREATE VIEW q AS SELECT x FROM v0", "CREATE TABLE w (x int)"):
        with counted(monkeypatch) as seen:
            before = names.catalog
            names(text)
            new = tuple(i for i in names.catalog.visible if i.id not in before.items)
            ddl.check_definitions(new[:1], names.catalog)
            compile_all(names.catalog)
        assert len(seen) <= 4, seen


def test_results_are_those_of_a_new_binding(names: Names) -> None:
    """After each statement, all definitions and streams are what they are without the cache."""
    names("CREATE SCHEMA s", "CREATE FUNCTION f(n bigint) RETURNS bigint LANGUAGE SQL RETURN n + 1", "CREATE VIEW s.v AS SELECT x FROM p")
    names("CREATE MATERIALIZED VIEW m AS SELECT f(x) AS n FROM t", "CREATE MATERIALIZED VIEW k AS SELECT count(*) AS n FROM s.v")
    names("CREATE MATERIALIZED VIEW above AS SELECT n FROM m UNION ALL SELECT n FROM k")
    plans = {i.id: bind_definition(i, names.catalog).plan for i in names.catalog.visible if i.query and i.is_relation}
    changed = set()
    for text in (
        "CREATE FUNCTION f(n int) RETURNS bigint LANGUAGE SQL RETURN n + 2",
        "ALTER TABLE t RENAME TO other",
        "CREATE TABLE t (x int, z text)",
        "ALTER SCHEMA s RENAME TO public2",
        "CREATE SCHEMA s",
        "CREATE VIEW s.v AS SELECT y AS x FROM u",
        "ALTER VIEW public2.v RENAME TO t",
        "DROP MATERIALIZED VIEW above",
        "DROP MATERIALIZED VIEW m, k",
        "CREATE OR REPLACE VIEW p AS SELECT y AS x FROM u",
        "CREATE MATERIALIZED VIEW m AS SELECT x FROM public2.t",
    ):
        names(text)
        catalog, streams = names.catalog, Streams(names.catalog)
        for item in catalog.visible:
            if item.query and item.is_relation:
                fresh = bound_anew(item, catalog)
                assert bind_definition(item, catalog) == fresh, (text, item.name)
                if isinstance(item, MaterializedView):
                    assert streams(item) == compile.stream(with_scan_sizes(fresh.plan, item), catalog, streams), (text, item.name)
                if plans.get(item.id, fresh.plan) != fresh.plan:
                    changed.add(item.name)
    assert {"m", "p"} <= changed, "the statements change plans"


def test_a_cache_is_bounded() -> None:
    cache: DefinitionCache[int] = DefinitionCache(results_max=2)
    computed: list[int] = []

    def value(key: int) -> int:
        return cache.get(key, catalog, lambda: computed.append(key) or key, lambda _: ())

    catalog = Catalog()
    assert [value(key) for key in (1, 2, 1, 3, 1, 2)] == [1, 2, 1, 3, 1, 2]
    assert computed == [1, 2, 3, 2], "the result that was used least recently is forgotten"
    catalog = catalog.apply(Change())
    assert value(2) == 2
    assert computed == [1, 2, 3, 2]
