"""Endpoints read with the privileges of their owners; callers need EXECUTE on the endpoint, and nothing else gives them rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tailgate.gateway.http.server import HttpOptions
from tests.authorization.conftest import CANARY, refused
from tests.authorization.world import World
from tests.gateway.http.conftest import Web
from tests.gateway.http.test_events import stream

SALARY = "CREATE ENDPOINT salary GET '/salary/:name' AS SELECT n FROM salaries WHERE name = :name"


@pytest.fixture
def web(world: World) -> Iterator[Web]:
    world.sql("boss", SALARY, "CREATE ENDPOINT own.all GET '/all' AS SELECT n FROM salaries")
    web = Web(world, HttpOptions("127.0.0.1", 0))
    yield web
    web.close()


def denied(web: Web, path: str, **headers: str) -> tuple[int, str]:
    """Returns status and SQLSTATE of a refused request, after asserting that no byte of it has the canary."""
    status, fields, body = web.request(path, **headers)
    assert str(CANARY) not in f"{fields} {body!r}"
    return status, body.decode().split('"sqlstate": "')[1][:5]


def test_callers_need_execute(world: World, web: Web) -> None:
    assert web.get("/salary/ann", Tailgate_Role="boss") == [{"n": CANARY}]
    assert denied(web, "/salary/ann", Tailgate_Role="low") == (403, "42501")
    world.sql("boss", "GRANT EXECUTE ON ENDPOINT salary TO low")
    assert web.get("/salary/ann", Tailgate_Role="low") == [{"n": CANARY}]
    refused(world, "low", "SELECT n FROM salaries")
    assert denied(web, "/salary/ann", Tailgate_Role="helper") == (403, "42501")
    world.sql("boss", "REVOKE EXECUTE ON ENDPOINT salary FROM low", "GRANT EXECUTE ON ENDPOINT salary TO PUBLIC")
    assert web.get("/salary/ann", Tailgate_Role="helper") == [{"n": CANARY}]
    world.sql("boss", "REVOKE EXECUTE ON ENDPOINT salary FROM PUBLIC", "GRANT SELECT ON salaries TO low")
    assert denied(web, "/salary/ann", Tailgate_Role="low") == (403, "42501")


def test_callers_need_usage_of_the_schema(world: World, web: Web) -> None:
    world.sql("boss", "GRANT EXECUTE ON ENDPOINT own.all TO low")
    assert denied(web, "/all", Tailgate_Role="low") == (403, "42501")
    world.sql("boss", "GRANT USAGE ON SCHEMA own TO low")
    assert web.get("/all", Tailgate_Role="low") == [{"n": CANARY}]


def test_an_endpoint_reads_with_the_privileges_of_its_owner(world: World, web: Web) -> None:
    world.sql("boss", "GRANT SELECT ON salaries TO low")
    world.sql("low", "CREATE ENDPOINT lo.mine GET '/mine' AS SELECT n FROM salaries", "GRANT EXECUTE ON ENDPOINT lo.mine TO PUBLIC")
    world.sql("low", "GRANT USAGE ON SCHEMA lo TO PUBLIC")
    assert web.get("/mine", Tailgate_Role="helper") == [{"n": CANARY}]
    world.sql("boss", "REVOKE SELECT ON salaries FROM low")
    for role in ("helper", "low"):
        assert denied(web, "/mine", Tailgate_Role=role) == (403, "42501")
    refused(world, "low", "CREATE ENDPOINT lo.again GET '/again' AS SELECT n FROM salaries")
    refused(world, "low", "CREATE OR REPLACE " + SALARY.removeprefix("CREATE "))


def test_an_index_answers_only_those_who_may(world: World, web: Web) -> None:
    world.sql("boss", "CREATE ENDPOINT by_key GET '/keys/:n' (:n int) AS SELECT name FROM salaries WHERE n = :n")
    for _ in range(40):
        assert web.get(f"/keys/{CANARY}", Tailgate_Role="boss") == {"name": "ann"}
    assert web.request(f"/keys/{CANARY}", Tailgate_Role="low")[0] == 403


def test_nobody_signs_in_as_another_role(world: World, web: Web) -> None:
    world.sql("tailgate", "ALTER ROLE boss PASSWORD 'secret'", "CREATE ROLE folder")
    for headers in (
        {"Tailgate_Role": "boss"},  # has a password
        {"Tailgate_Role": "absent"},
        {"Tailgate_Role": "folder"},  # may not log in
        {"Tailgate_Role": "tailgate", "Host": "evil.example"},  # a page of another site, by DNS rebinding
        {"Authorization": "Bearer x"},
        {"Authorization": "Basic Ym9zczpzZWNyZXQ="},
    ):
        for path in ("/salary/ann", "/absent"):
            status, fields, body = web.request(path, **headers)
            assert (status, fields["www-authenticate"]) == (401, 'Bearer realm="tailgate"'), (headers, body)
            assert str(CANARY).encode() not in body


def test_requests_per_second(world: World) -> None:
    web = Web(world, HttpOptions("127.0.0.1", 0, rate=5))
    world.sql("boss", SALARY, "GRANT EXECUTE ON ENDPOINT salary TO low")
    statuses = [web.request("/salary/ann", Tailgate_Role="low")[0] for _ in range(40)]
    assert statuses.count(200) >= 5
    assert 429 in statuses
    assert web.request("/salary/ann", Tailgate_Role="boss")[0] == 200
    web.close()


def test_a_stream_ends_when_its_caller_may_no_longer_read(world: World, web: Web) -> None:
    world.sql("boss", "CREATE TABLE wages (name text PRIMARY KEY, n int)", "INSERT INTO wages VALUES ('ann', 1)")
    world.sql("boss", "CREATE ENDPOINT wage GET '/wage/:name' AS SELECT n FROM wages WHERE name = :name")
    assert web.error("/wage/ann", Accept="text/event-stream", Tailgate_Role="low") == (403, "42501")
    for revoke in ("REVOKE EXECUTE ON ENDPOINT wage FROM low", "DROP TOKEN t FOR low", "ALTER ENDPOINT wage SET SCHEMA own"):
        world.sql("boss", "GRANT EXECUTE ON ENDPOINT wage TO low", "UPDATE wages SET n = 1")
        headers = {"Tailgate_Role": "low"}
        if "TOKEN" in revoke:
            headers = {"Authorization": f"Bearer {world.sql('tailgate', 'CREATE TOKEN t FOR low')[0][0]}"}
        with stream(web, "/wage/ann", **headers) as wage:
            assert wage.next()[2] == {"n": 1}
            world.sql("tailgate", revoke)
            world.sql("boss", f"UPDATE wages SET n = {CANARY}")
            kind, _, data = wage.next()
            assert (kind, data["error"]["sqlstate"]) == ("end", "28P01" if "TOKEN" in revoke else "42501")
            assert wage.response.read() == b""


def test_the_document_shows_only_what_the_caller_may_call(world: World, web: Web) -> None:
    paths = lambda role: set(web.get("/openapi.json", Tailgate_Role=role)["paths"])  # noqa: E731
    world.sql("boss", "GRANT EXECUTE ON ENDPOINT own.all TO low")  # without USAGE of the schema
    assert paths("boss") >= {"/salary/{name}", "/all"}
    assert paths("low") & {"/salary/{name}", "/all"} == set()
    world.sql("boss", "GRANT EXECUTE ON ENDPOINT salary TO low")
    assert paths("low") & {"/salary/{name}", "/all"} == {"/salary/{name}"}
    assert denied(web, "/openapi.json", Tailgate_Role="absent") == (401, "28000")
