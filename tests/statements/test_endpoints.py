"""CREATE, ALTER, DROP and SHOW of endpoints, and the privileges on them."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.authorization.world import World


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("endpoints") / "lake")
    world.sql("tailgate", "CREATE ROLE ann LOGIN", "CREATE ROLE bob LOGIN", "GRANT CREATE ON SCHEMA public TO ann, bob")
    yield world
    world.close()


@pytest.fixture
def world(shared: World) -> Iterator[World]:
    shared.sql("ann", "CREATE TABLE users (id bigint PRIMARY KEY, name text)")
    yield shared
    shared.sql("tailgate", "SELECT 1", *(f"DROP ENDPOINT {name}" for name, *_ in shared.sql("tailgate", "SHOW ENDPOINTS")))
    shared.sql("ann", "DROP TABLE IF EXISTS users CASCADE", "DROP TABLE IF EXISTS people CASCADE")


ENDPOINT = "CREATE ENDPOINT users GET '/users/:id' (:id bigint) AS SELECT id, name FROM users WHERE id = :id"


def failure(world: World, user: str, text: str) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as raised:
        world.sql(user, text)
    return raised.value


def test_an_endpoint_has_the_name_of_a_table(world: World) -> None:
    assert world.sql("ann", ENDPOINT) == ["CREATE ENDPOINT"]
    assert world.sql("ann", "SHOW ENDPOINTS") == [("users", "GET", "/users/:id")]
    assert world.sql("ann", "SHOW CREATE ENDPOINT users") == [("users", ENDPOINT)]
    assert world.sql("ann", "SELECT * FROM tailgate.endpoints") == [("public", "users", "GET", "/users/:id")]
    assert world.sql("ann", "SELECT count(*) FROM users") == [(0,)]
    assert failure(world, "ann", ENDPOINT).sqlstate == "42710"
    assert world.sql("ann", ENDPOINT.replace("ENDPOINT", "ENDPOINT IF NOT EXISTS")) == ["CREATE ENDPOINT"]
    assert world.sql("ann", ENDPOINT.replace("CREATE", "CREATE OR REPLACE").replace("id, name", "name")) == ["CREATE ENDPOINT"]
    assert "SELECT name FROM" in world.sql("ann", "SHOW CREATE ENDPOINT users")[0][1]


def test_dependencies_and_names(world: World) -> None:
    world.sql("ann", ENDPOINT)
    refused = failure(world, "ann", "DROP TABLE users")
    assert (refused.sqlstate, refused.diag.message_detail) == ("2BP01", "endpoint users depends on table users")
    world.sql("ann", "ALTER TABLE users RENAME TO people", "ALTER ENDPOINT users RENAME TO by_id")
    text = "CREATE ENDPOINT by_id GET '/users/:id' (:id bigint) AS SELECT id, name FROM people AS users WHERE id = :id"
    assert world.sql("ann", "SHOW CREATE ENDPOINT by_id") == [("by_id", text)]
    world.sql("ann", "COMMENT ON ENDPOINT by_id IS 'a user'", "DROP TABLE people CASCADE")
    assert world.sql("ann", "SHOW ENDPOINTS") == []
    assert failure(world, "ann", "DROP ENDPOINT by_id").sqlstate == "42704"
    assert world.sql("ann", "DROP ENDPOINT IF EXISTS by_id") == ["DROP ENDPOINT"]


@pytest.mark.parametrize(
    ("change", "sqlstate"),
    [
        (("GET '/users/:id'", "POST '/users/:id'"), "42P17"),
        (("'/users/:id'", "'users/:id'"), "42P17"),
        (("'/users/:id'", "'/users/../:id'"), "42P17"),
        (("'/users/:id'", "'/users/:id/:id'"), "42P17"),
        (("'/users/:id'", "'/users/:other'"), "42P17"),
        (("'/users/:id'", "'/openapi.json'"), "42939"),
        (("(:id bigint)", "(:id bigint, :id text)"), "42P17"),
        (("(:id bigint)", "(:id bigint, :x text)"), "42P17"),
        (("(:id bigint)", "(:id bigint DEFAULT now())"), "42601"),
        (("(:id bigint)", "(:id bigint DEFAULT 'x')"), "22P02"),
        (("(:id bigint)", "WITH (numbers = 'roman')"), "22023"),
        (("(:id bigint)", "WITH (cache = 5)"), "0A000"),
        (("= :id", "= :id AND name = :limit"), "42939"),
        (("id, name", "id, name AS id"), "42701"),
        (("FROM users", "FROM absent"), "42P01"),
        (("= :id", "= :id AND missing = 1"), "42703"),
    ],
)
def test_invalid_definitions(world: World, change: tuple[str, str], sqlstate: str) -> None:
    assert change[0] in ENDPOINT
    assert failure(world, "ann", ENDPOINT.replace(*change)).sqlstate == sqlstate
    assert world.sql("ann", "SHOW ENDPOINTS") == []


def test_two_endpoints_with_one_path(world: World) -> None:
    world.sql("ann", ENDPOINT)
    other = "CREATE ENDPOINT other GET '/users/:name' AS SELECT id FROM users WHERE name = :name"
    assert failure(world, "ann", other).sqlstate == "42710"
    world.sql("ann", other.replace("/users/", "/names/"))


def test_privileges(world: World) -> None:
    assert failure(world, "bob", ENDPOINT).sqlstate == "42501"  # no SELECT on the table
    world.sql("ann", ENDPOINT)
    for text in ("DROP ENDPOINT users", "ALTER ENDPOINT users RENAME TO mine", "GRANT EXECUTE ON ENDPOINT users TO bob"):
        assert failure(world, "bob", text).sqlstate == "42501"
    world.sql("tailgate", "GRANT SELECT ON users TO bob")
    assert failure(world, "bob", ENDPOINT.replace("CREATE", "CREATE OR REPLACE")).sqlstate == "42501"
    assert world.sql("ann", "GRANT EXECUTE ON ENDPOINT users TO bob") == ["GRANT"]
    assert failure(world, "ann", "GRANT SELECT ON ENDPOINT users TO bob").sqlstate == "0LP01"
    assert failure(world, "ann", "GRANT EXECUTE ON users TO bob").sqlstate == "0LP01"
    assert "privileges for endpoint users" in str(failure(world, "tailgate", "DROP ROLE bob").diag.message_detail)
    assert world.sql("ann", "REVOKE ALL ON ENDPOINT users FROM bob") == ["REVOKE"]
