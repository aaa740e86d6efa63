"""Definitions are bound and compiled once for all catalogs in which they mean the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tailgate.engine import ddl
from tailgate.engine.plan.rules import compile
from tailgate.engine.plan.views.streams import Streams, as_planned
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, known_columns
from tailgate.lake.errors import ProgramLimitExceeded
from tailgate.sql import definition_cache, definitions
from tailgate.sql.authorization import EXECUTE, SELECT, Demand
from tailgate.sql.bind import bind_query
from tailgate.sql.binder.queries import views
from tailgate.sql.binder.relation_names import ExpandedView
from tailgate.sql.definition_cache import DefinitionCache
from tailgate.sql.definitions import bind_definition
from tailgate.sql.plan import Query, Relation
from tailgate.sql.plan.traversal import inputs
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
    bindings: list[str] = []
    compiled = compile.stream
    with patch.context() as patched:
        patched.setattr(
            definitions, "bind_query", lambda text, *args, **options: bindings.append(str(text)) or bind_query(text, *args, **options)
        )
        patched.setattr(compile, "stream", lambda *args: bindings.append("") or compiled(*args))
        yield bindings


@pytest.fixture
def names() -> Names:
    result = Names()
    result("CREATE TABLE t (x int)", "CREATE TABLE u (x int, y int)", "CREATE VIEW p AS SELECT x FROM t UNION ALL SELECT y FROM u")
    return result


def test_a_statement_binds_and_compiles_only_what_it_changes(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 200 views, creating one view bound and compiled each of the others twice."""
    for number in range(VIEWS):
        names(f"CREATE MATERIALIZED VIEW v{number} AS {QUERIES[number % 3].format(n=number)}")
    compile_all(names.catalog)
    for text in ("CREATE MATERIALIZED VIEW last AS SELECT x FROM v0", "CREATE VIEW q AS SELECT x FROM v0", "CREATE TABLE w (x int)"):
        with counted(monkeypatch) as bindings:
            before = names.catalog
            names(text)
            new = tuple(i for i in names.catalog.visible if i.id not in before.items)
            ddl.check_definitions(new[:1], names.catalog)
            compile_all(names.catalog)
        assert len(bindings) <= 4, bindings


def test_results_are_those_of_a_new_binding(names: Names) -> None:
    """After each statement, all definitions and streams are equal to those without the cache."""
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
                    assert streams(item) == compile.stream(as_planned(fresh.plan, item), catalog, streams), (text, item.name)
                if plans.get(item.id, fresh.plan) != fresh.plan:
                    changed.add(item.name)
    assert {"m", "p"} <= changed, "the statements change plans"


def view_of(text: str, catalog: Catalog) -> Relation:
    """Returns the plan of the view in SELECT * FROM view."""
    (plan,) = inputs(bind_query(text, catalog).plan)
    return plan


def test_queries_share_the_plan_of_a_view(names: Names) -> None:
    """A query that names a plain view does not bind the view's query again, until the view means something else."""
    names("CREATE VIEW above AS SELECT x AS n FROM p WHERE x > 1")
    plan = view_of("SELECT * FROM above", names.catalog)
    names("CREATE TABLE w (x int)", "CREATE MATERIALIZED VIEW m AS SELECT x FROM w")
    assert view_of("SELECT n + 1 FROM above AS a", names.catalog) is plan
    names("CREATE OR REPLACE VIEW p AS SELECT y AS x FROM u")
    changed = view_of("SELECT * FROM above", names.catalog)
    assert changed != plan
    names("CREATE FUNCTION f(n int) RETURNS int LANGUAGE SQL RETURN n + 1")
    assert view_of("SELECT * FROM above", names.catalog) == changed


def test_queries_of_views_need_the_same_privileges_again(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that takes a view's plan from the cache also takes the privileges that the view needs from there."""
    names("CREATE FUNCTION total() RETURNS bigint LANGUAGE SQL RETURN (SELECT sum(x) FROM p)", "CREATE VIEW s AS SELECT total() AS n")
    names("CREATE VIEW above AS SELECT p.x, s.n FROM p, s WHERE x IN (SELECT x FROM p)")
    catalog = names.catalog
    id = {item.name: item.id for item in catalog.visible}
    texts = (
        "SELECT * FROM above",
        "SELECT * FROM p, above",
        "SELECT total(), n FROM s",
        "SELECT total() FROM above",
        "SELECT * FROM above",
    )
    queries = [bind_query(text, catalog) for text in texts]
    for text, query in zip(texts, queries, strict=True):
        with monkeypatch.context() as patched:
            patched.setattr(views, "_views", DefinitionCache())
            assert bind_query(text, catalog) == query, text
    assert set(queries[-1].demands) == {
        Demand(SELECT, id["above"], columns=(0, 1)),
        Demand(SELECT, id["p"], (id["above"],), columns=(0,)),
        Demand(SELECT, id["s"], (id["above"],), columns=(0,)),
        Demand(EXECUTE, id["total"], (id["s"],)),
        Demand(SELECT, id["p"], (id["s"], id["total"]), columns=(0,)),
        Demand(SELECT, id["t"], (id["p"],), columns=(0,)),
        Demand(SELECT, id["u"], (id["p"],), columns=(1,)),
    }


def test_the_depth_of_views_does_not_depend_on_the_cache(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of 100 levels counts the levels of views whose plans are in the cache."""
    names("CREATE VIEW v1 AS SELECT x FROM t", *(f"CREATE VIEW v{n} AS SELECT x FROM v{n - 1}" for n in range(2, 102)))
    for cache in (views._views, DefinitionCache[ExpandedView]()):
        monkeypatch.setattr(views, "_views", cache)
        bind_query("SELECT * FROM v100", names.catalog)
        with pytest.raises(ProgramLimitExceeded, match="views over views are nested too deep"):
            bind_query("SELECT * FROM v101", names.catalog)


def test_a_cache_is_bounded() -> None:
    cache: DefinitionCache[int] = DefinitionCache(results_max=2)
    computed: list[int] = []

    def value(key: int) -> int:
        return cache.get(key, catalog, lambda: computed.append(key) or key, lambda _: (), "")

    catalog = Catalog()
    assert [value(key) for key in (1, 2, 1, 3, 1, 2)] == [1, 2, 1, 3, 1, 2]
    assert computed == [1, 2, 3, 2], "the result that was used least recently is forgotten"
    catalog = catalog.apply(Change())
    assert value(2) == 2
    assert computed == [1, 2, 3, 2]


def test_the_definitions_of_cached_results_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, versions of a long view would fill memory."""
    monkeypatch.setattr(definition_cache, "CHARACTERS_MAX", 100)
    cache, catalog, computed = DefinitionCache[int](), Catalog(), list[int]()

    def get(number: int, text: str) -> None:
        cache.get(number, catalog, lambda: computed.append(number) or number, lambda _: (), text)  # type: ignore[func-returns-value]

    for number in (1, 2, 1):
        get(number, "x" * 50)
    assert computed == [1, 2]
    get(3, "x" * 50)
    get(1, "x" * 50)
    get(2, "x" * 50)
    assert computed == [1, 2, 3, 2]
    get(4, "x" * 1000)
    get(4, "x" * 1000)
    get(1, "x" * 50)
    assert computed == [1, 2, 3, 2, 4, 1]
