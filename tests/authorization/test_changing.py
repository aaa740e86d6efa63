"""Tests that a statement changes exactly the objects whose ownership was checked.

Names are resolved once, by the gateway.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from tailgate.gateway.security.ownership import check_change
from tailgate.lake.catalog import Change, MaterializedView
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.catalog.roles import SCHEMA_ID
from tailgate.lake.errors import InsufficientPrivilege, SerializationFailure, TailgateError
from tailgate.sql.name_resolution import resolve
from tailgate.sql.statements import parse
from tests.authorization.conftest import CANARY, new_world, refused
from tests.authorization.world import World
from tests.engine.runtime.inside import Waiting

# Objects of boss with names that a temporary view may also have.
OF_BOSS = [
    "CREATE SECRET word AS 'unsaid'",
    "CREATE SOURCE clicks FROM KAFKA BROKER 'k' TOPIC 't' FORMAT TEXT",
    "CREATE SEQUENCE seq",
    "CREATE VIEW v AS SELECT n FROM salaries",
    "CREATE MATERIALIZED VIEW m AS SELECT n FROM salaries",
]
HIDDEN = [
    ("seq", "ALTER SEQUENCE seq RENAME TO mine"),
    ("seq", "COMMENT ON SEQUENCE public.seq IS 'mine'"),
    ("seq", "GRANT ALL ON SEQUENCE seq TO low"),
    ("seq", "DROP SEQUENCE seq"),
    ("salaries", "CREATE SEQUENCE lo.s OWNED BY salaries.n"),
    ("salaries", "GRANT SELECT ON salaries TO low"),
    ("salaries", "REVOKE ALL ON salaries FROM boss"),
    ("salaries", "ALTER TABLE salaries ADD COLUMN x int DEFAULT 1"),
    ("salaries", "ALTER TABLE public.salaries ALTER COLUMN name SET DEFAULT 'x'"),
    ("salaries", "ALTER TABLE public.salaries OWNER TO low"),
    ("salaries", "CREATE UNIQUE INDEX ON public.salaries (n)"),
    ("salaries", "CREATE TABLE lo.referring (n bigint REFERENCES salaries (n))"),
    ("word", "ALTER SECRET word AS 'mine'"),
    ("word", "ALTER SECRET IF EXISTS word AS 'mine'"),
    ("word", "GRANT USAGE ON SECRET word TO low"),
    ("word", "DROP SECRET word"),
    ("word", "CREATE CONNECTION lo.c TO KAFKA (BROKER 'k', SASL MECHANISMS 'PLAIN', SASL USERNAME 'u', SASL PASSWORD SECRET word)"),
    ("clicks", "PAUSE SOURCE clicks"),
    ("clicks", "RESUME SOURCE clicks"),
    ("clicks", "RETRY DEAD LETTERS OF clicks"),
    ("clicks", "DELETE DEAD LETTERS OF clicks"),
    ("clicks", "DELETE DEAD LETTERS OF clicks WHERE value IS NULL"),
    ("clicks", "DELETE DEAD LETTERS OF clicks"),
    ("clicks", "ALTER SOURCE clicks RESUME AT EARLIEST"),
    ("clicks", "ALTER SOURCE clicks REFRESH SCHEMA"),
    ("clicks", "ALTER SOURCE clicks RESUME AT EARLIEST"),
    ("clicks", "DROP SOURCE clicks"),
    ("clicks", "ALTER SOURCE clicks RENAME TO mine"),
    ("clicks", "COMMENT ON SOURCE clicks IS 'mine'"),
    ("v", "CREATE OR REPLACE VIEW public.v AS SELECT 1 AS n"),
    ("v", "COMMENT ON VIEW public.v IS 'mine'"),
    ("v", "DROP VIEW public.v"),
    ("m", "CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT 1 AS n"),
    ("m", "CREATE OR REPLACE MATERIALIZED VIEW public.m AS SELECT 1 AS n"),
    ("m", "CREATE INDEX ON m (n)"),
    ("m", "CANCEL BACKFILL m"),
    ("m", "CREATE SUBSCRIPTION lo.s FROM m"),
    ("salaries", "CREATE SINK lo.s FROM salaries INTO KAFKA BROKER 'k' TOPIC 't' KEY (n) FORMAT JSON ENVELOPE UPSERT"),
    ("salaries", "CREATE SINK lo.s FROM (SELECT n FROM salaries) INTO KAFKA BROKER 'k' TOPIC 't' FORMAT JSON ENVELOPE DEBEZIUM"),
    ("salaries", "CREATE FUNCTION lo.f() RETURNS bigint LANGUAGE SQL AS 'SELECT sum(n) FROM salaries'"),
    ("salaries", "CREATE FUNCTION lo.f() RETURNS bigint LANGUAGE SQL RETURN (SELECT sum(n) FROM salaries)"),
    ("salaries", "CREATE MATERIALIZED VIEW lo.x AS SELECT n FROM salaries"),
    ("m", "EXPLAIN MATERIALIZED VIEW m"),
    ("salaries", "EXPLAIN CREATE MATERIALIZED VIEW x AS SELECT n FROM salaries"),
]


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Creates the objects of boss. low may create objects in public, so no test fails for that reason."""
    world = new_world(tmp_path_factory.mktemp("hidden"))
    world.sql("tailgate", "GRANT CREATE ON SCHEMA public TO low")
    world.sql("boss", *OF_BOSS)
    yield world
    world.close()


def of_boss(world: World) -> object:
    catalog = world.lake.catalog()
    boss = catalog.role("boss").id
    return [i for i in catalog.items.values() if i.owner == boss], dict(catalog.roles), catalog.schemas


@pytest.mark.parametrize(("name", "text"), HIDDEN, ids=lambda part: part)
def test_a_temporary_view_stands_for_nothing_else(hidden: World, name: str, text: str) -> None:
    """Regression: the gateway checked the owner of the temporary view, and the engine changed
    another object with the same name.
    """
    before = of_boss(hidden)
    with hidden.connect("low") as low:
        low.execute(f"CREATE TEMPORARY VIEW {name} AS SELECT 1 AS n")
        with pytest.raises(psycopg.Error) as raised:
            low.execute(text.encode())
        assert raised.value.sqlstate not in ("XX000", "40001"), raised.value
        assert str(CANARY) not in str(raised.value)
    assert of_boss(hidden) == before


def test_foreign_keys_need_references_and_new_owners_are_groups_of_the_role(world: World) -> None:
    world.sql("boss", "CREATE TABLE hub (id int PRIMARY KEY)", "INSERT INTO hub VALUES (1)")
    world.sql("tailgate", "CREATE ROLE crew", "GRANT CREATE ON SCHEMA public TO low")
    for text in ("CREATE TABLE spoke (id int REFERENCES hub)", "CREATE TABLE spoke (id int, FOREIGN KEY (id) REFERENCES public.hub)"):
        assert "permission denied for table hub" in str(refused(world, "low", text))
    world.sql("low", "CREATE TABLE spoke (id int)")
    assert "permission denied for table hub" in str(refused(world, "low", "ALTER TABLE spoke ADD FOREIGN KEY (id) REFERENCES hub"))
    world.sql("low", "CREATE TABLE own (id int PRIMARY KEY)", "ALTER TABLE spoke ADD FOREIGN KEY (id) REFERENCES own")
    assert 'must be member of role "crew"' in str(refused(world, "low", "ALTER TABLE spoke OWNER TO crew"))
    world.sql("tailgate", "GRANT crew TO low")
    assert "permission denied for schema public" in str(refused(world, "low", "ALTER TABLE spoke OWNER TO crew"))
    world.sql("tailgate", "GRANT CREATE ON SCHEMA public TO crew")
    world.sql("low", "ALTER TABLE spoke OWNER TO crew")


OWNED = [
    "CREATE OR REPLACE VIEW public.v AS SELECT 1 AS n",
    "CREATE OR REPLACE MATERIALIZED VIEW public.m AS SELECT 1 AS n",
    "CREATE OR REPLACE FUNCTION public.f() RETURNS int LANGUAGE SQL AS 'SELECT 2'",
    "ALTER TABLE public.salaries ADD COLUMN x int DEFAULT 1",
]


@pytest.mark.parametrize("text", OWNED)
def test_to_replace_is_to_own(world: World, text: str) -> None:
    world.sql("boss", *OF_BOSS, "CREATE FUNCTION f() RETURNS int LANGUAGE SQL AS 'SELECT 1'")
    world.sql("tailgate", "GRANT CREATE ON SCHEMA public TO low")
    before = world.lake.catalog().items
    error = refused(world, "low", text)
    assert (error.diag.message_primary or "").startswith("must be owner of")
    refused(world, "low", text.replace("public.", ""))
    # a function with other arguments is a different function
    world.sql("low", "CREATE OR REPLACE FUNCTION public.f(int) RETURNS int LANGUAGE SQL AS 'SELECT $1'")
    assert {i: world.lake.catalog().items[i] for i in before} == before


def test_a_changed_function_is_asked_of_the_owners_above_it(world: World) -> None:
    """Regression: the privileges on the relations that the function reads were not checked."""
    world.sql("low", "CREATE FUNCTION lo.f() RETURNS bigint LANGUAGE SQL AS 'SELECT 1::bigint'", "CREATE VIEW lo.v AS SELECT lo.f()")
    refused(world, "low", "CREATE OR REPLACE FUNCTION lo.f() RETURNS bigint LANGUAGE SQL AS 'SELECT sum(n) FROM salaries'")
    assert world.sql("low", "TABLE lo.v") == [(1,)]


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_a_changed_function_needs_what_the_views_above_it_may_read(world: World, kind: str) -> None:
    """The function's owner may read the table, but the owner of the view above may not."""
    world.sql("boss", "CREATE FUNCTION own.f() RETURNS bigint LANGUAGE SQL AS 'SELECT 1::bigint'", "GRANT USAGE ON SCHEMA own TO low")
    world.sql("low", f"CREATE {kind} lo.v AS SELECT own.f()")
    error = refused(world, "boss", "CREATE OR REPLACE FUNCTION own.f() RETURNS bigint LANGUAGE SQL AS 'SELECT sum(n) FROM salaries'")
    assert error.diag.message_primary == "permission denied for table salaries"
    assert error.diag.message_detail == f"{kind.lower()} lo.v is made of it, and its owner may not read that."
    assert world.sql("low", "TABLE lo.v") == [(1,)]


def test_a_changed_view_needs_what_the_views_above_it_may_call(world: World) -> None:
    """A view may be replaced if those who read it through other views may read it.

    boss owns the view below and has granted SELECT on it, so low's materialized view may show the
    table's rows. Without that grant the replacement is refused.
    """
    world.sql("boss", "CREATE VIEW own.below AS SELECT 1 AS n", "GRANT USAGE ON SCHEMA own TO low", "GRANT SELECT ON own.below TO low")
    world.sql("low", "CREATE MATERIALIZED VIEW lo.m AS SELECT n FROM own.below")
    world.sql("boss", "CREATE OR REPLACE VIEW own.below AS SELECT n FROM salaries")  # boss grants SELECT on it
    assert world.sql("low", "TABLE lo.m") == [(CANARY,)]
    world.sql("boss", "REVOKE SELECT ON own.below FROM low")
    refused(world, "boss", "CREATE OR REPLACE VIEW own.below AS SELECT n + 1 AS n FROM salaries")


def test_the_schema_of_a_role_s_name_is_not_made_by_others(world: World) -> None:
    """`$user` is the first schema of the path, so a schema named like a role would hide all other names."""
    refused(world, "low", "ALTER SCHEMA lo RENAME TO boss")
    refused(world, "low", "ALTER SCHEMA lo OWNER TO boss")


def test_to_rename_is_to_create(world: World) -> None:
    world.sql("tailgate", "GRANT CREATE ON SCHEMA own TO low", "GRANT USAGE ON SCHEMA own TO low")
    world.sql("low", "CREATE VIEW own.w AS SELECT 1 AS n")
    world.sql("tailgate", "REVOKE CREATE ON SCHEMA own FROM low")
    refused(world, "low", "ALTER VIEW own.w RENAME TO x")


# ---- names are resolved once -------------------------------------------------------------------


class Between:
    """A context in which `change` runs `times` times between check and execution of statements."""

    def __init__(self, world: World, change: Callable[[], object], times: int = 1) -> None:
        self._world, self._change, self._left = world, change, times
        self._execute = world.execute
        self.seen = 0

    def __enter__(self) -> Between:
        self._world.execute = self._late
        return self

    def __exit__(self, *exception: object) -> None:
        self._world.execute = self._execute

    def _late(self, *arguments: Any) -> dict[str, Any]:
        self.seen += 1
        if self._left:
            self._left -= 1
            self._world.execute = self._execute
            self._change()
            self._world.execute = self._late
        return self._execute(*arguments)


def test_an_object_that_takes_the_name_meanwhile_is_refused(world: World) -> None:
    """The role low drops its view and boss creates one of that name: the new check refuses the statement."""
    world.sql("tailgate", "GRANT CREATE ON SCHEMA public TO low")
    world.sql("low", "CREATE VIEW public.v AS SELECT 1 AS n")
    with Between(world, lambda: (world.sql("low", "DROP VIEW public.v"), world.sql("boss", "CREATE VIEW v AS SELECT n FROM salaries"))):
        refused(world, "low", "GRANT SELECT ON v TO helper")
    catalog = world.lake.catalog()
    view = catalog.find("v")
    assert view is not None and view.id not in catalog.access


GIVEN = {"SCHEMA own": "USAGE", "TABLE salaries": "SELECT"}


@pytest.mark.parametrize("object", GIVEN)
def test_an_object_that_gets_another_owner_before_commit(world: World, object: str) -> None:
    """The old owner keeps no privilege, whether it has granted others in the block or before the block that gives the object."""
    grant = f"GRANT {GIVEN[object]} ON {object} TO low"
    with world.connect("boss") as block:
        block.execute(f"BEGIN; {grant}".encode())
        world.sql("tailgate", f"ALTER {object} OWNER TO helper")
        with pytest.raises(psycopg.errors.SerializationFailure):
            block.execute("COMMIT")
    world.sql("tailgate", f"ALTER {object} OWNER TO boss")
    with world.connect() as block:
        block.execute(f"BEGIN; ALTER {object} OWNER TO helper".encode())
        world.sql("boss", grant)
        block.execute("COMMIT")
    catalog = world.lake.catalog()
    (access,) = (access for id, access in catalog.access.items() if id != SCHEMA_ID)
    boss, low, helper = (catalog.role(name).id for name in ("boss", "low", "helper"))
    assert {(entry.grantee, entry.grantor) for entry in access.entries or ()} >= {(helper, helper), (low, helper)}
    assert not access.mentions(boss)


CHANGES = [
    ("DROP VIEW lo.v", "CREATE VIEW lo.v AS SELECT 2 AS n"),
    ("CREATE OR REPLACE VIEW lo.v AS SELECT 2 AS n",),
    ("ALTER VIEW lo.v RENAME TO w",),
    ("CREATE ROLE another",),
    ("GRANT SELECT ON lo.v TO helper",),
    ("REVOKE USAGE ON SCHEMA public FROM PUBLIC",),
    ("ALTER SCHEMA lo OWNER TO helper",),
]


@pytest.mark.parametrize("changes", CHANGES, ids=lambda texts: texts[0])
def test_the_engine_refuses_a_resolution_of_other_objects(world: World, changes: tuple[str, ...]) -> None:
    """The engine raises 40001; the gateway then resolves the names again."""
    world.sql("low", "CREATE VIEW lo.v AS SELECT 1 AS n")
    text = "COMMENT ON VIEW lo.v IS 'mine'"
    resolution = resolve(text, world.lake.catalog(), world.lake.catalog())
    world.sql("tailgate", *changes)
    with pytest.raises(SerializationFailure):
        world.execute(text, {"role": "low"}, resolution, Waiting())
    before = world.lake.catalog()
    again = resolve(text, before, before)
    if before.find(Name("v", "lo")) is not None:
        world.execute(text, {"role": "low"}, again, Waiting())


def test_unrelated_objects_may_change(world: World) -> None:
    world.sql("low", "CREATE VIEW lo.v AS SELECT 1 AS n", "CREATE VIEW lo.w AS SELECT 1 AS n")
    text = "COMMENT ON VIEW lo.v IS 'mine'"
    resolution = resolve(text, world.lake.catalog(), world.lake.catalog())
    world.sql("low", "DROP VIEW lo.w", "CREATE VIEW lo.x AS SELECT n FROM lo.v")
    world.sql("boss", "INSERT INTO salaries VALUES (1)", "ALTER TABLE salaries RENAME TO wages")
    world.execute(text, {"role": "low"}, resolution, Waiting())


def test_a_statement_whose_names_change_all_the_time_fails_with_40001(world: World) -> None:
    world.sql("low", "CREATE VIEW lo.v AS SELECT 0 AS n")
    count = itertools.count(1)
    with Between(world, lambda: world.sql("low", f"CREATE OR REPLACE VIEW lo.v AS SELECT {next(count)} AS n"), times=100):
        refused(world, "low", "GRANT SELECT ON lo.v TO helper", sqlstate="40001")
    with Between(world, lambda: world.sql("low", f"CREATE OR REPLACE VIEW lo.v AS SELECT {next(count)} AS n"), times=2) as between:
        world.sql("low", "GRANT SELECT ON lo.v TO helper")
    assert between.seen == 3


def test_names_of_a_resolution_mean_nothing_else(world: World) -> None:
    """The engine resolves only names that the gateway has resolved."""
    world.sql("boss", "CREATE VIEW v AS SELECT n FROM salaries")
    catalog = world.lake.catalog()
    nothing = resolve("", catalog, catalog)
    with pytest.raises(TailgateError) as raised:
        world.execute("GRANT SELECT ON v TO low", {"role": "low"}, nothing, Waiting())
    assert raised.value.sqlstate == "42P01"
    resolution = resolve("TABLE v", catalog, catalog)
    assert Resolution.from_json(json.loads(json.dumps(resolution.to_json()))) == resolution


@pytest.mark.parametrize("text", ["PAUSE CTAS_M_0", "RESUME CTAS_M_0", "TERMINATE CTAS_M_0", "EXPLAIN CTAS_M_0"])
def test_a_query_belongs_to_the_owner_of_its_view(world: World, text: str) -> None:
    world.sql("boss", "CREATE MATERIALIZED VIEW m AS SELECT n FROM salaries")
    catalog = world.lake.catalog()
    view = catalog.relation("m")
    assert isinstance(view, MaterializedView)
    properties = KsqldbItem(
        type="table", statement="", topic="M", key_format="KAFKA", value_format="JSON", query="CTAS_M_0", number=0, reset="latest"
    )
    catalog = catalog.apply(Change(put=(replace(view, ksqldb=properties),)))
    checked = catalog.with_resolution(resolve(text, catalog, catalog))
    with pytest.raises(InsufficientPrivilege, match="must be owner of materialized view m"):
        check_change(parse(text), catalog.role("low"), checked, "tailgate")
    check_change(parse(text), catalog.role("boss"), checked, "tailgate")
    with pytest.raises(SerializationFailure):
        catalog.apply(Change(put=(replace(view, name="other"),))).with_resolution(resolve(text, catalog, catalog))
