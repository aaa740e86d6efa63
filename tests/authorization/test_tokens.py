"""Tokens of roles: their owners and privileges. Only CREATE TOKEN shows a token."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pytest

from tailgate.gateway.http import callers, service
from tailgate.gateway.http.server import HttpOptions
from tailgate.lake.passwords import TOKEN_PREFIX
from tests.authorization.conftest import CANARY, refused
from tests.authorization.world import World
from tests.gateway.http.conftest import Web
from tests.gateway.http.test_events import stream


@pytest.fixture
def web(world: World) -> Iterator[Web]:
    world.sql("boss", "CREATE ENDPOINT salary GET '/salary/:name' AS SELECT n FROM salaries WHERE name = :name")
    web = Web(world, HttpOptions("127.0.0.1", 0))
    yield web
    web.close()


def created(world: World, user: str, name: str, role: str) -> str:
    ((token,),) = world.sql(user, f"CREATE TOKEN {name} FOR {role}")
    assert token.startswith(TOKEN_PREFIX)
    return str(token)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Host": "api.example"}


def test_a_token_is_its_role(world: World, web: Web) -> None:
    world.sql("tailgate", "ALTER ROLE boss PASSWORD 'secret'")
    boss, low = created(world, "tailgate", "app", "boss"), created(world, "low", "app", "low")
    assert boss != low
    assert web.get("/salary/ann", **bearer(boss)) == [{"n": CANARY}]
    status, _, body = web.request("/salary/ann", **bearer(low))
    assert (status, str(CANARY) in str(body)) == (403, False)
    for wrong in (boss[:-1], boss + "x", "", boss.upper(), low[:10]):
        assert web.request("/salary/ann", **bearer(wrong))[0] == 401
    assert web.request("/salary/ann", Authorization=f"Basic {boss}")[0] == 401
    assert world.sql("tailgate", "DROP TOKEN app FOR boss") == ["DROP TOKEN"]
    assert web.request("/salary/ann", **bearer(boss))[0] == 401


def test_the_role_must_be_able_to_log_in(world: World, web: Web) -> None:
    token = created(world, "tailgate", "app", "boss")
    world.sql("tailgate", "ALTER ROLE boss NOLOGIN")
    assert web.request("/salary/ann", **bearer(token))[0] == 401
    world.sql("tailgate", "ALTER ROLE boss LOGIN")
    assert web.request("/salary/ann", **bearer(token))[0] == 200


def test_the_role_must_have_connect(world: World, web: Web) -> None:
    world.sql("boss", "GRANT EXECUTE ON ENDPOINT salary TO low")
    token = created(world, "tailgate", "app", "low")
    assert web.request("/salary/ann", **bearer(token))[0] == 200
    with world.connect("tailgate") as operator:
        database = operator.info.dbname
        operator.execute(f"REVOKE CONNECT ON DATABASE {database} FROM PUBLIC".encode())
        try:
            status, fields, body = web.request("/salary/ann", **bearer(token))
            assert (status, "www-authenticate" in fields, b"permission denied for database" in body) == (403, False, True)
        finally:
            operator.execute(f"GRANT CONNECT ON DATABASE {database} TO PUBLIC".encode())


def test_who_creates_and_sees_tokens(world: World) -> None:
    created(world, "boss", "app", "boss")
    created(world, "tailgate", "other", "low")
    refused(world, "low", "CREATE TOKEN mine FOR boss")
    refused(world, "low", "DROP TOKEN app FOR boss")
    refused(world, "boss", "CREATE TOKEN app FOR boss", sqlstate="42710")
    refused(world, "boss", "DROP TOKEN absent FOR boss", sqlstate="42704")
    refused(world, "tailgate", "CREATE TOKEN app FOR absent", sqlstate="42704")
    refused(world, "boss", "CREATE TOKEN late FOR boss VALID UNTIL 'tomorrow or so'", sqlstate="22007")
    refused(world, "boss", "CREATE TOKEN known FOR boss AS 'sha256$00'", sqlstate="0A000")
    refused(world, "boss", "BEGIN", "CREATE TOKEN inside FOR boss", sqlstate="25001")
    assert world.sql("tailgate", "SHOW TOKENS") == [("app", "boss", None), ("other", "low", None)]
    assert world.sql("low", "SHOW TOKENS") == [("other", "low", None)]
    assert world.sql("low", "SHOW TOKENS LIKE 'a%'") == []
    assert world.sql("boss", "DROP TOKEN IF EXISTS absent FOR boss") == ["DROP TOKEN"]


@pytest.mark.parametrize("end", ["infinity", "-infinity", "20000-01-01 00:00:00+00", "0044-03-15 00:00:00+00 BC"])
def test_a_token_ends_at_any_time(world: World, end: str) -> None:
    with world.connect("boss") as session:
        session.execute("SET TIME ZONE 'UTC'")
        session.execute(f"CREATE TOKEN late FOR boss VALID UNTIL '{end}'".encode())
        result = session.execute("SHOW TOKENS").pgresult
        assert result is not None
        assert result.get_value(0, 2) == end.encode()


def test_a_token_ends(world: World, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr(callers, "now_ms", lambda: now * 1000)
    monkeypatch.setattr(service, "now_ms", lambda: now * 1000)
    end = datetime.fromtimestamp(int(now) + 60, timezone.utc)
    with world.connect("boss") as session:
        session.execute("SET TIME ZONE 'Asia/Tokyo'")
        local = f"{end.astimezone(ZoneInfo('Asia/Tokyo')):%Y-%m-%d %H:%M:%S}"
        ((token,),) = session.execute(f"CREATE TOKEN brief FOR boss VALID UNTIL '{local}'".encode()).fetchall()
    assert world.sql("boss", "SHOW TOKENS") == [("brief", "boss", end)]
    world.sql("boss", "CREATE TABLE wages (name text PRIMARY KEY, n int)", "INSERT INTO wages VALUES ('ann', 1)")
    world.sql("boss", "CREATE ENDPOINT wage GET '/wage/:name' AS SELECT n FROM wages WHERE name = :name")
    with stream(web, "/wage/ann", **bearer(token)) as wage:
        assert wage.next()[2] == {"n": 1}
        now = end.timestamp() - 0.001
        assert web.request("/salary/ann", **bearer(token))[0] == 200
        now = end.timestamp()
        assert web.error("/salary/ann", **bearer(token)) == (401, "28P01")
        world.sql("boss", f"UPDATE wages SET n = {CANARY}")
        kind, _, data = wage.next()
        assert (kind, data["error"]["sqlstate"]) == ("end", "28P01")
    world.sql("boss", "DROP TOKEN brief FOR boss")
    created(world, "boss", "brief", "boss")
    assert world.sql("boss", "SHOW TOKENS") == [("brief", "boss", None)]


def test_tokens_are_kept_as_hashes(world: World) -> None:
    token = created(world, "boss", "app", "boss")
    secret = token.removeprefix(TOKEN_PREFIX).encode()
    files = [path for path in world.lake.path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if secret in path.read_bytes()]
    assert world.sql("tailgate", "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%tailgate\\_%'") == [(0,)]


def test_a_lake_without_roles_has_no_tokens(tmp_path: object) -> None:
    from pathlib import Path

    assert isinstance(tmp_path, Path)
    world = World(tmp_path / "lake")
    try:
        refused(world, "tailgate", "CREATE TOKEN app FOR tailgate", sqlstate="55000")
        assert world.sql("tailgate", "SELECT 1") == [(1,)]
    finally:
        world.close()
