"""Schemas and names: definitions keep their meaning when objects are renamed or moved."""

from __future__ import annotations

import contextlib
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from tailgate.engine import ddl
from tailgate.engine.ddl.view import errors_item
from tailgate.lake.catalog import Catalog, Change, Item, Table, View, ready
from tailgate.lake.catalog.codec import decode_catalog, decode_change, encode_catalog
from tailgate.lake.catalog.names import Name, list_of, listed
from tailgate.lake.catalog.roles import SCHEMA_ID, DefaultPrivileges, Granted, Role
from tailgate.lake.catalog.schemas import PUBLIC
from tailgate.lake.errors import DuplicateSchema, DuplicateTable, InvalidSchemaName, TailgateError
from tailgate.lake.folder import Lake
from tailgate.lake.tables.stored_relations import relations
from tailgate.sql.bind import bind_query
from tailgate.sql.definitions import bind_definition, for_search_path
from tailgate.sql.statements import (
    AlterItem,
    AlterSchema,
    CreateFunction,
    CreateSchema,
    CreateSink,
    CreateSource,
    CreateTable,
    CreateView,
    Drop,
    DropSchema,
    parse,
)  # fmt: skip
from tests.gateway.serving.model_lake import ModelLake

VIEWS = 8  # of the random test


class Names:
    """A session that runs statements against a catalog. Views are ready at once."""

    def __init__(self) -> None:
        self.catalog = Catalog()
        self.path: tuple[str, ...] = ("public",)

    @property
    def seen(self) -> Catalog:
        return self.catalog.along(self.path)

    def __call__(self, *texts: str) -> None:
        for text in texts:
            self.catalog = self.catalog.apply(self._change(text))

    def _change(self, text: str) -> Change:
        statement, catalog = parse(text), self.seen
        match statement:
            case CreateSchema():
                return ddl.create_schema(statement, None, catalog)[0]
            case AlterSchema():
                return ddl.alter_schema(statement, catalog)
            case DropSchema():
                return ddl.drop_schemas(statement, catalog)[0]
            case CreateTable():
                table, others = ddl.create_table(statement, text, catalog)
                return Change(put=(table, *others))
            case CreateSource():
                return Change(put=ddl.create_source(statement, text, catalog, None))  # type: ignore[arg-type]  # no registry
            case CreateSink():
                return Change(put=(ddl.create_sink(statement, text, catalog),))
            case CreateView():
                old = catalog.find(Name(statement.name.name, catalog.home(statement.name).name))
                if old is not None and statement.replace:
                    return Change(put=ddl.replace_view(statement, text, catalog, old))
                view = ready(ddl.create_view(statement, text, catalog))
                return Change(put=(view, errors_item(view)) if view.errors else (view,))
            case CreateFunction():
                return Change(put=ddl.create_function(statement, text, catalog, 10))
            case AlterItem():
                return ddl.alter(statement, catalog)[0]
            case Drop():
                return ddl.drop(statement, catalog)[0]
        raise AssertionError(text)

    def __getitem__(self, name: str) -> Item:
        schema, _, relation = name.rpartition(".")
        return self.catalog.relation(Name(relation, schema or None))


@pytest.fixture
def names() -> Names:
    result = Names()
    result("CREATE SCHEMA a", "CREATE SCHEMA b", "CREATE TABLE a.t (x int)", "CREATE TABLE b.t (y int)", "CREATE TABLE t (z int)")
    return result


def test_stored_text_uses_the_search_path_public(names: Names) -> None:
    names.path = ("a", "public")
    names("CREATE VIEW v AS SELECT a.t.x, b.t.y, u.z FROM t, b.t, public.t AS u")
    assert names["a.v"].sql == "CREATE VIEW a.v AS SELECT a.t.x, b.t.y, u.z FROM a.t, b.t, public.t AS u"
    assert [c.name for c in names["a.v"].columns] == ["x", "y", "z"]
    assert for_search_path(names["a.v"], names.seen).sql == names["a.v"].sql
    assert for_search_path(names["a.v"], names.catalog.along(("b",))).query == "SELECT a.t.x, b.t.y, u.z FROM a.t, b.t, public.t AS u"
    names("CREATE VIEW public.w AS WITH t AS (SELECT 1 AS one) SELECT one FROM t, public.t AS u")
    assert names["w"].sql == "CREATE VIEW public.w AS WITH t AS (SELECT 1 AS one) SELECT one FROM t, public.t AS u"


def test_moves(names: Names) -> None:
    names("CREATE VIEW v AS SELECT t.x, a.t.x AS same FROM a.t", "CREATE MATERIALIZED VIEW a.m AS SELECT x FROM v")
    names("ALTER TABLE a.t RENAME TO u")
    assert names["v"].query == "SELECT t.x, t.x AS same FROM a.u AS t"
    names("ALTER TABLE a.u SET SCHEMA b", "ALTER MATERIALIZED VIEW a.m SET SCHEMA b", "ALTER VIEW v SET SCHEMA b")
    assert names["b.v"].query == "SELECT t.x, t.x AS same FROM b.u AS t"
    assert names["b.m"].query == "SELECT x FROM b.v"
    assert names["b.m_errors"].depends == (names["b.m"].id,)
    names('ALTER SCHEMA b RENAME TO "Mixed Case"')
    assert names["Mixed Case.m"].sql == 'CREATE MATERIALIZED VIEW "Mixed Case".m AS SELECT x FROM "Mixed Case".v'
    assert names["Mixed Case.m_errors"].sql == names["Mixed Case.m"].sql
    with pytest.raises(TailgateError, match='relation "t" already exists in schema "a"'):
        names("CREATE TABLE a.t (x int)", 'ALTER TABLE "Mixed Case".t SET SCHEMA a')


def test_a_moved_relation_is_not_confused_with_a_cte(names: Names) -> None:
    names("CREATE VIEW v AS WITH c AS (SELECT 1 AS one) SELECT one, x FROM c, a.t AS s")
    names("ALTER TABLE a.t RENAME TO c", "ALTER TABLE a.c SET SCHEMA public")
    assert names["v"].query == "WITH c AS (SELECT 1 AS one) SELECT one, x FROM c, public.c AS s"


def test_a_rename_is_refused_if_a_stored_text_cannot_name_it(names: Names) -> None:
    names("CREATE TABLE a.e (at timestamp)", "CREATE VIEW v AS SELECT e.at FROM tumble(a.e, at, INTERVAL '1 hour')")
    with pytest.raises(TailgateError, match='a new name for what view "v" reads is not supported'):
        names("ALTER TABLE a.e RENAME TO f")
    names("ALTER TABLE a.e SET SCHEMA b")
    assert names["v"].query == "SELECT e.at FROM tumble(b.e, at, INTERVAL '1 hour')"


def test_sources_and_sinks(names: Names) -> None:
    names.path = ("a",)
    kafka = "KAFKA BROKER 'kafka:9092' TOPIC 'words'"
    names(f"CREATE SOURCE words FROM {kafka} FORMAT TEXT", "CREATE MATERIALIZED VIEW m AS SELECT count(*) FROM words")
    names(f"CREATE SINK k FROM m INTO {kafka} FORMAT JSON ENVELOPE DEBEZIUM")
    names.path = ("public",)
    names(f"CREATE SOURCE words FROM {kafka} FORMAT TEXT")
    assert names["a.words_dead_letters"].depends == (names["a.words"].id,)
    assert names["words_dead_letters"].depends == (names["words"].id,)
    sink = names.catalog.find(Name("k", "a"))
    assert sink is not None
    assert sink.sql.startswith("CREATE SINK a.k FROM a.m INTO")
    stored = {s.name for s in relations(names.catalog).values()}
    assert {"a.words_dead_letters", "words_dead_letters", "a.m", "a.m_errors"} <= stored
    names("ALTER SCHEMA a RENAME TO z")
    moved = names.catalog.find(Name("k", "z"))
    assert moved is not None
    assert moved.sql.startswith("CREATE SINK z.k FROM z.m INTO")
    names("ALTER SOURCE z.words SET SCHEMA b")
    assert names["b.words_dead_letters"].sql == names["b.words"].sql
    assert names["z.m"].query == "SELECT count(*) FROM b.words"


def test_functions(names: Names) -> None:
    names.path = ("a", "public")
    names("CREATE FUNCTION f(n int) RETURNS bigint LANGUAGE SQL AS $$ SELECT count(*) + n FROM t $$")
    names("CREATE FUNCTION g() RETURNS bigint LANGUAGE SQL RETURN f(1) + f(n => 2)", "CREATE VIEW v AS SELECT g() AS n")
    names("CREATE FUNCTION public.f(n int) RETURNS bigint LANGUAGE SQL RETURN n")
    names("CREATE VIEW w AS SELECT f(3) AS n, public.f(4) AS m")
    (f,) = names.catalog.functions(Name("f", "a"))
    assert f.sql == "CREATE FUNCTION a.f(n int) RETURNS bigint LANGUAGE SQL AS $$ SELECT count(*) + n FROM a.t $$"
    (g,) = names.catalog.functions(Name("g", "a"))
    assert (g.sql, g.query) == (
        "CREATE FUNCTION a.g() RETURNS bigint LANGUAGE SQL RETURN a.f(1) + a.f(n => 2)", "SELECT a.f(1) + a.f(n => 2)"
    )  # fmt: skip
    assert names["a.w"].query == "SELECT a.f(3) AS n, public.f(4) AS m"
    names("ALTER SCHEMA a RENAME TO c")
    (g,) = names.catalog.functions(Name("g", "c"))
    assert g.query == "SELECT c.f(1) + c.f(n => 2)"
    assert names["c.v"].query == "SELECT c.g() AS n"


def test_drop_schema(names: Names) -> None:
    names("CREATE MATERIALIZED VIEW m AS SELECT x FROM a.t", "CREATE VIEW b.v AS SELECT x FROM m")
    with pytest.raises(TailgateError) as error:
        names("DROP SCHEMA a")
    assert error.value.detail == (
        "table a.t depends on schema a\nmaterialized view m depends on table a.t\nview b.v depends on materialized view m"
    )
    names("DROP SCHEMA a CASCADE", "DROP SCHEMA b CASCADE")
    assert [i.name for i in names.catalog.visible] == ["t"]
    assert names.catalog.find_schema("a") is None


def test_default_privileges_of_public_end_with_it(names: Names) -> None:
    reads = (Granted(101, 100, frozenset(("SELECT",))),)
    defaults = tuple(DefaultPrivileges(schema, "relation", reads) for schema in (0, SCHEMA_ID))
    owner, reader = Role(100, "owner", default_privileges=defaults), Role(101, "reader")
    names.catalog = names.catalog.apply(Change(put_roles=(owner, reader)))
    names("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    assert names.catalog.roles == {100: replace(owner, default_privileges=defaults[:1]), 101: reader}


def test_random_moves_keep_the_meaning_of_queries(names: Names, seed: int) -> None:
    """Views over equally named relations in several schemas, created with random search paths.

    After any moves, each view reads the same relations.
    """
    chance = random.Random(seed)
    number = 0
    while len(names.catalog.each(View)) < VIEWS:  # a name that is in use makes no view
        names.path = tuple(chance.sample(("a", "b", "public"), 3))
        relations = [i for i in names.seen.visible if isinstance(i, Table | View)]
        one, two = chance.choice(relations), chance.choice(relations)
        first, second = (names.seen.name_of(i).sql if chance.random() < 0.7 else names.seen.along(()).name_of(i).sql for i in (one, two))
        column = chance.choice([one.columns[0].name, f"p.{one.columns[0].name}"])
        schema = chance.choice(("", "a.", "b.", "public."))
        name = chance.choice(("t", "u", f"v{number}"))
        if names.seen.find(Name(name, schema.rstrip(".") or names.path[0])) is None:
            names(
                f"CREATE VIEW {schema}{name} AS SELECT {column} AS c{number} FROM {first} AS p, (SELECT count(*) AS q FROM {second}) AS o"
            )
        number += 1
    definitions = {i.id: bind_definition(i, names.catalog) for i in names.catalog.visible if i.query}
    assert len(definitions) == VIEWS
    for _ in range(25):
        names.path = tuple(chance.sample(("a", "b", "public"), 3))
        item = chance.choice(names.catalog.visible)
        kind, full = item.kind.upper(), names.seen.along(()).name_of(item).sql
        say = chance.choice(
            (f"ALTER {kind} {full} RENAME TO {chance.choice('tuvw')}", f"ALTER {kind} {full} SET SCHEMA {chance.choice('ab')}")
        )
        if chance.random() < 0.2:
            say = chance.choice(("ALTER SCHEMA a RENAME TO c", "ALTER SCHEMA c RENAME TO a"))
        # the name is in use, or the schema does not exist
        with contextlib.suppress(DuplicateTable, DuplicateSchema, InvalidSchemaName):
            names(say)
        for id, before in definitions.items():
            now = bind_definition(names.catalog[id], names.catalog)
            assert (now.depends, now.columns, now.plan) == (before.depends, before.columns, before.plan), (say, names.catalog[id].sql)
            along = for_search_path(names.catalog[id], names.seen)
            assert bind_query(along.query, names.seen, view=True).depends == before.depends, (names.path, along.query)


def test_a_lake_from_before_schemas(tmp_path: Path) -> None:
    """Objects from before schemas existed are in public, and their names keep their meaning."""
    lake = ModelLake(tmp_path / "lake")
    base = lake.create("base")
    view = View(lake.writer.catalog.next_id, "v", base.columns[:1], depends=(base.id,), query="SELECT id FROM base")
    lake.writer.append(kind="catalog", catalog=Change(put=(replace(view, sql="CREATE VIEW v AS SELECT id FROM base"),)))
    lake.tick({base.id: [((1, "x", None), 1)]})
    lake.writer.close()
    for file in (tmp_path / "lake" / "catalog").iterdir():
        data = json.loads(file.read_text())
        for item in data["items"]:
            del item["schema"]
        file.write_text(json.dumps(data))
    catalog = Lake.open(tmp_path / "lake").catalog()
    assert {catalog.schema_of(i) for i in catalog.visible} == {PUBLIC}
    assert bind_definition(catalog.relation("v"), catalog).depends == (base.id,)
    assert bind_query("SELECT v.id FROM public.v", catalog).depends == (catalog.relation("v").id,)
    names = Names()
    names.catalog = catalog
    names("CREATE SCHEMA old", "ALTER VIEW v SET SCHEMA old")
    assert names["old.v"].sql == "CREATE VIEW old.v AS SELECT id FROM base"
    assert decode_change({"put": [], "drop": []}) == Change()
    assert decode_catalog(json.loads(json.dumps(encode_catalog(names.catalog)))) == names.catalog


def test_lists_of_names() -> None:
    assert listed(' "a""b" , C,"D e" ') == ('a"b', "c", "D e")
    assert listed("") == ()
    assert listed(list_of(("$user", 'x"y', "", "select"))) == ("$user", 'x"y', "", "select")
    for wrong in ("a,", ",a", "a b", '"a', 'a"b"'):
        with pytest.raises(ValueError, match=r"."):
            listed(wrong)
