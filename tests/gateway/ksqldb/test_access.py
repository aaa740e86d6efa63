"""Access to the HTTP API: Basic authentication with roles, addresses, TLS, and pages of other sites."""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from tailgate.gateway.asgi import access
from tailgate.gateway.ksqldb.server.command import add_options, checked_arguments
from tailgate.gateway.ksqldb.server.main import HttpServer
from tailgate.gateway.ksqldb.server.options import Options
from tailgate.gateway.security.tls import Files
from tailgate.lake.errors import InvalidParameterValue, SystemError_
from tests.certificates import Authority
from tests.gateway.ksqldb.test_push_views import views
from tests.gateway.ksqldb.world import Api, KsqldbWorld


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Yields a server over a lake with roles: ann has a password and may read averages, bob has no password."""
    world = KsqldbWorld(tmp_path_factory.mktemp("access") / "lake")
    world.append("averages", [("s1", 1.5, 2)])
    with psycopg.connect(world.dsn, user="tailgate", autocommit=True) as connection:
        for text in (
            "CREATE ROLE ann LOGIN PASSWORD 'secret'",
            "CREATE ROLE eve LOGIN PASSWORD 'eve'",
            "CREATE ROLE bob LOGIN",
            "GRANT SELECT ON averages TO ann",
            "CREATE TYPE code AS DECIMAL(4, 2)",
        ):
            connection.execute(text.encode())
    api = Api(world)
    yield api
    api.close()
    world.close()


def test_a_role_signs_in_with_its_password(own: Api) -> None:
    status, _, body = own.request("POST", "/query-stream", {"sql": "SELECT n FROM averages;"}, **basic("ann", "secret"))
    assert (status, body.splitlines()[1:]) == (200, [b"[2]"])
    status, headers, body = own.request("POST", "/ksql", {"ksql": "SHOW STREAMS;"}, **basic("ann", "wrong"))
    assert (status, headers["www-authenticate"], json.loads(body)["error_code"]) == (401, 'Basic realm="tailgate"', 40100)


def test_a_role_without_connect_and_one_with_too_many_sessions_are_refused(own: Api) -> None:
    with psycopg.connect(own.world.dsn, user="tailgate", dbname="tailgate", autocommit=True) as operator:
        operator.execute("CREATE ROLE dan LOGIN PASSWORD 'dan' CONNECTION LIMIT 0")

        def refused() -> tuple[int, int]:
            status, _, body = own.request("POST", "/ksql", {"ksql": "SHOW STREAMS;"}, **basic("dan", "dan"))
            return status, json.loads(body)["error_code"]

        assert refused() == (429, 42900)
        operator.execute("ALTER ROLE dan CONNECTION LIMIT -1")
        operator.execute("REVOKE CONNECT ON DATABASE tailgate FROM PUBLIC")
        try:
            assert refused() == (403, 40300)
        finally:
            operator.execute("GRANT CONNECT ON DATABASE tailgate TO PUBLIC")


def test_only_owners_change_types_and_streams(own: Api) -> None:
    for text in (
        "DROP TYPE code;",
        "ALTER STREAM readings ADD COLUMN n INT;",
        "CREATE OR REPLACE STREAM readings (n INT) WITH (format = 'json');",
    ):
        _, document = own.failed("/ksql", {"ksql": text}, **basic("ann", "secret"))
        assert "must be owner of" in document["message"] or "permission denied" in document["message"], document
    status, _, body = own.request("POST", "/ksql", {"ksql": "SHOW TYPES;"}, **basic("ann", "secret"))
    assert (status, list(json.loads(body)[0]["types"])) == (200, ["CODE"])


def test_privileges_are_those_of_the_role(own: Api) -> None:
    for path, text in (
        ("/query-stream", "SELECT * FROM t;"),
        ("/query-stream", "SELECT * FROM t EMIT CHANGES;"),
        ("/query-stream", "SELECT * FROM readings EMIT CHANGES;"),
        ("/ksql", "SHOW TOPICS;"),
        ("/ksql", "EXPLAIN SELECT area FROM readings EMIT CHANGES;"),
        ("/ksql", "EXPLAIN CREATE STREAM s AS SELECT * FROM readings;"),
        ("/ksql", "EXPLAIN INSERT INTO readings SELECT * FROM averages;"),
    ):
        status, document = own.failed(path, {"sql": text, "ksql": text}, **basic("ann", "secret"))
        assert (status, document["error_code"]) == (403, 40300), text
    status, document = own.failed("/ksql", {"ksql": "DROP TABLE averages;"}, **basic("ann", "secret"))
    assert (status, document["message"]) == (403, "must be owner of materialized view averages")
    for user, shown in (("ann:secret", True), ("eve:eve", False)):
        entities = json.loads(own.request("POST", "/ksql", {"ksql": "SHOW QUERIES;"}, **basic(*user.split(":")))[2])
        assert bool(entities[0]["queries"][0]["queryString"]) == shown


def test_terminate_checks_owners_before_it_drops(own: Api) -> None:
    """A topic of an item that the role may read but does not own. Relations with the same name in other schemas are not concerned."""
    with psycopg.connect(own.world.dsn, user="tailgate", autocommit=True) as admin:
        admin.execute("GRANT SELECT ON readings, averages TO eve")
        admin.execute("GRANT CREATE ON SCHEMA public TO eve")
        assert own.request("POST", "/ksql", {"ksql": "CREATE STREAM hers AS SELECT * FROM readings;"}, **basic("eve", "eve"))[0] == 200
        status, document = own.failed("/ksql/terminate", {"deleteTopicList": ["HERS", "AVERAGES"]}, **basic("eve", "eve"))
        assert (status, document["error_code"], document["message"]) == (403, 40300, "must be owner of materialized view averages")
        entities = json.loads(own.request("POST", "/ksql", {"ksql": "SHOW QUERIES;"})[2])
        assert [query["sinks"] for query in entities[0]["queries"]] == [["AVERAGES"], ["HERS"]]
        admin.execute("CREATE SCHEMA elsewhere")
        admin.execute("CREATE TABLE elsewhere.hers (id int PRIMARY KEY)")
        assert own.request("POST", "/ksql/terminate", {"deleteTopicList": ["HERS"]}, **basic("eve", "eve"))[0] == 200
        assert json.loads(own.request("POST", "/ksql", {"ksql": "SHOW STREAMS;"})[2])[0]["streams"][0]["name"] != "HERS"
        admin.execute("DROP SCHEMA elsewhere CASCADE")
        admin.execute("REVOKE CREATE ON SCHEMA public FROM eve")
        admin.execute("REVOKE SELECT ON readings, averages FROM eve")


def test_the_view_of_a_push_query_belongs_to_its_role(own: Api) -> None:
    with psycopg.connect(own.world.dsn, user="tailgate", autocommit=True) as admin:
        admin.execute("GRANT SELECT ON readings TO ann")
        with psycopg.connect(own.world.dsn, user="ann", password="secret") as ann:
            ann.execute("DECLARE c CURSOR FOR SELECT * FROM readings EMIT CHANGES")
            (view,) = views(own.world)
            read = f"SELECT * FROM pg_transient.{view.name}".encode()
            assert admin.execute(read).fetchall() == []
            with psycopg.connect(own.world.dsn, user="eve", password="eve") as eve, pytest.raises(errors.InsufficientPrivilege):
                eve.execute(read)
        admin.execute("REVOKE SELECT ON readings FROM ann")


def test_a_role_without_a_password_has_none_to_give(own: Api) -> None:
    assert own.failed("/ksql", {"ksql": "SHOW STREAMS;"}, **basic("bob", "anything"))[0] == 401
    assert own.failed("/ksql", {"ksql": "SHOW STREAMS;"}, **basic("nobody", "x"))[0] == 401
    for header in ("Basic", "Basic !", "Basic YQ==", "Bearer abc"):
        assert own.failed("/ksql", {"ksql": "SHOW STREAMS;"}, Authorization=header)[0] == 401


def test_users_see_and_close_only_their_own(own: Api) -> None:
    assert own.request("POST", "/ksql", {"ksql": "CREATE STREAM o (a INT) WITH (kafka_topic = 'o', value_format = 'json');"})[0] == 200
    assert json.loads(own.request("GET", "/status")[2]) == {"commandStatuses": {"stream/O/create": "SUCCESS"}}
    assert json.loads(own.request("GET", "/status", **basic("ann", "secret"))[2]) == {"commandStatuses": {}}
    connection = own.connection("POST", "/query-stream", {"sql": "SELECT * FROM averages EMIT CHANGES;"})
    response = connection.getresponse()
    id = json.loads(response.readline())["queryId"]
    assert own.failed("/close-query", {"queryId": id}, **basic("ann", "secret"))[0] == 400
    assert own.request("POST", "/close-query", {"queryId": id})[0] == 200
    connection.close()


def test_pages_of_other_sites_are_refused(own: Api) -> None:
    body = {"ksql": "SHOW STREAMS;"}
    assert own.failed("/ksql", body, Origin="http://evil.example")[0] == 403
    assert own.failed("/ksql", body, Host="evil.example")[0] == 403
    assert own.request("POST", "/ksql", body, Origin=f"http://127.0.0.1:{own.port}")[0] == 200
    assert own.request("POST", "/ksql", body, Origin="http://evil.example", **basic("ann", "secret"))[0] == 200


def test_other_machines_need_tls_and_a_password(own: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_is_local", lambda host: False)
    assert own.failed("/ksql", {"ksql": "SHOW STREAMS;"}, **basic("ann", "secret"))[0] == 403
    assert access._is_local("127.0.0.1") is False


def replace_files(files: Files, authority: Authority) -> None:
    """Writes a new certificate and its key."""
    pair = authority.pair()
    files.key.touch(0o600)
    files.key.write_text(pair.key)
    files.certificate.write_text(pair.certificate)


def test_tls_with_replaced_files(own: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files(tmp_path / "certificate.pem", tmp_path / "key.pem")
    authorities = Authority(), Authority()
    replace_files(files, authorities[0])
    api = Api(own.world, tls=files)
    try:
        for authority in authorities:
            replace_files(files, authority)
            ca = tmp_path / "authority.pem"
            ca.write_text(authority.certificate)
            for version in ("--http1.1", "--http2"):
                words = ["curl", "-sS", version, "--cacert", str(ca), "-w", "%{http_version} %{http_code}", "-o", "/dev/null"]
                result = subprocess.run([*words, f"https://127.0.0.1:{api.port}/info"], capture_output=True, text=True, timeout=30)
                assert result.stdout == f"{'2' if version == '--http2' else '1.1'} 200", result.stderr
        monkeypatch.setattr(access, "_is_local", lambda host: False)
        words = [
            "curl",
            "-sSk",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "-d",
            '{"ksql":"SHOW STREAMS;"}',
            f"https://127.0.0.1:{api.port}/ksql",
        ]
        assert subprocess.run(words, capture_output=True, text=True, timeout=30).stdout == "401"
        assert subprocess.run([*words, "-u", "ann:secret"], capture_output=True, text=True, timeout=30).stdout == "200"
    finally:
        api.close()


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_client_certificates(own: Api, tmp_path: Path, version: str) -> None:
    """With an authority, a client needs a certificate that it signed, and still its password beyond this machine."""
    files = Files(tmp_path / "certificate.pem", tmp_path / "key.pem", tmp_path / "authority.pem")
    authority = Authority()
    replace_files(files, authority)
    (tmp_path / "authority.pem").write_text(authority.certificate)
    for name, signer in (("right", authority), ("wrong", Authority())):
        pair = signer.pair("client")
        (tmp_path / f"{name}.pem").write_text(pair.certificate + pair.key)
    api = Api(own.world, tls=files)
    words = ["curl", "-sS", version, "--cacert", str(tmp_path / "authority.pem"), "-w", "%{http_code}", "-o", "/dev/null"]
    try:
        for name, status in ((None, "000"), ("wrong", "000"), ("right", "200")):
            certificate = [] if name is None else ["--cert", str(tmp_path / f"{name}.pem")]
            command = [*words, *certificate, f"https://127.0.0.1:{api.port}/info"]
            assert subprocess.run(command, capture_output=True, text=True, timeout=30).stdout == status
    finally:
        api.close()


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser)
    parser.add_argument("--ksqldb")
    return parser.parse_args(words)


def test_unsafe_addresses_are_refused() -> None:
    assert checked_arguments(arguments()) == ()
    assert checked_arguments(arguments("--ksqldb", "0.0.0.0:8088", "--insecure")) == ("--insecure",)
    assert Options.of(arguments(), "[::1]:8088", "g").host == "::1"
    for address in ("0.0.0.0:8088", ":8088"):
        with pytest.raises(InvalidParameterValue):
            checked_arguments(arguments("--ksqldb", address))


def test_files_of_tls_are_passed_on() -> None:
    files = ("--tls-cert", "/c.pem", "--tls-key", "/k.pem", "--tls-ca", "/a.pem")
    assert checked_arguments(arguments("--ksqldb", "0.0.0.0:8088", *files)) == files
    assert Options.of(arguments(*files), "0.0.0.0:8088", "g").tls == Files(Path("/c.pem"), Path("/k.pem"), Path("/a.pem"))
    for words in (files[:2], files[2:4], files[4:], files[2:]):
        with pytest.raises(InvalidParameterValue, match="belong together"):
            Options.of(arguments(*words), "127.0.0.1:8088", "g")


def test_a_host_with_addresses_of_both_versions_is_the_one_of_version_4(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most machines have both for localhost, and clients are given 127.0.0.1."""

    async def both(*_: object, **__: object) -> list[tuple[object, ...]]:
        addresses = ((socket.AF_INET6, ("::1", 0, 0, 0)), (socket.AF_INET, ("127.0.0.1", 0)))
        return [(family, socket.SOCK_STREAM, 6, "", address) for family, address in addresses]

    async def check() -> None:
        server = HttpServer(Options("localhost", 0, "127.0.0.1:1"))
        await server.start()
        socket.create_connection(("127.0.0.1", server.port)).close()
        await server.stop()

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", both)
    asyncio.run(check())


def test_a_host_that_does_not_exist_is_an_error_that_names_it() -> None:
    server = HttpServer(Options("unknown.invalid", 0, "127.0.0.1:1"))
    with pytest.raises(SystemError_, match=r"could not resolve the address unknown\.invalid: "):
        asyncio.run(server.start())
