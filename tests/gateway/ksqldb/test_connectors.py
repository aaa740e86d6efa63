"""Connectors by HTTP and by the PostgreSQL protocol, with a worker of Kafka Connect in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tailgate.engine.ddl.ksqldb import Endpoints
from tailgate.engine.runtime.connect import Connectors, client
from tailgate.ksql.entities import entity
from tests.connect_worker import SINK, SOURCE, ConnectWorker
from tests.gateway.ksqldb.world import Api, KsqldbWorld

CREATE = f"CREATE SOURCE CONNECTOR calls WITH ('connector.class' = '{SOURCE}', 'topic' = 'r', 'database.password' = 'guarded');"


@pytest.fixture
def worker(world: KsqldbWorld, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectWorker]:
    with ConnectWorker() as worker:
        monkeypatch.setattr(world.engine._statements, "_connectors", Connectors(Endpoints(connect=worker.url)))
        monkeypatch.setattr(client, "BUSY_LOOK_S", 0.01)
        yield worker


def rows(world: KsqldbWorld, text: str, user: str = "tailgate") -> tuple[list[tuple[Any, ...]], str, list[str]]:
    """Returns rows, tag and notices of a statement over the PostgreSQL protocol."""
    notices: list[str] = []
    with psycopg.connect(world.dsn, user=user, autocommit=True) as connection:
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        cursor = connection.execute(text.encode())
        return cursor.fetchall() if cursor.description else [], cursor.statusmessage or "", notices


def test_entities(api: Api, worker: ConnectWorker) -> None:
    (created,) = api.ksql(CREATE)
    assert worker.connectors == {"CALLS": {"connector.class": SOURCE, "topic": "r", "database.password": "guarded"}}
    assert created["@type"] == "connector_info"
    assert created["info"]["name"] == "CALLS"
    assert created["info"]["config"]["connector.class"] == SOURCE
    assert created["info"]["type"] == "source"
    assert "guarded" not in json.dumps(created)
    assert entity(created) == "Created connector CALLS"

    (listed,) = api.ksql("SHOW CONNECTORS;")
    connector = {"name": "CALLS", "type": "source", "className": SOURCE, "state": "RUNNING (1/1 tasks RUNNING)"}
    assert (listed["@type"], listed["connectors"]) == ("connector_list", [connector])
    assert "CALLS" in entity(listed)
    assert api.ksql("LIST SINK CONNECTORS;")[0]["connectors"] == []

    (described,) = api.ksql("DESCRIBE CONNECTOR calls;")
    assert described["@type"] == "connector_description"
    assert described["connectorClass"] == SOURCE
    assert described["status"]["tasks"] == [{"id": 0, "state": "RUNNING", "worker_id": "w:8083", "trace": None}]
    assert described["topics"] == ["r"]
    assert [source["name"] for source in described["sources"]] == ["READINGS"]
    assert "READINGS" in entity(described)

    (plugins,) = api.ksql("SHOW CONNECTOR PLUGINS;")
    assert plugins["@type"] == "connector_plugins_list"
    assert plugins["connectorsPlugins"][1] == {"className": SOURCE, "type": "source", "version": "1"}
    assert SINK in entity(plugins)

    (again,) = api.ksql(CREATE.replace("CONNECTOR calls", "CONNECTOR IF NOT EXISTS calls"))
    assert (again["@type"], again["message"]) == ("warning_entity", "Connector CALLS already exists")
    (dropped,) = api.ksql("DROP CONNECTOR calls;")
    assert (dropped["@type"], dropped["connectorName"]) == ("drop_connector", "CALLS")
    assert worker.connectors == {}
    (absent,) = api.ksql("DROP CONNECTOR IF EXISTS calls;")
    assert (absent["@type"], absent["message"]) == ("warning_entity", "Connector CALLS does not exist")


def test_errors_by_http_have_no_passwords(api: Api, worker: ConnectWorker) -> None:
    invalid = CREATE.replace("'topic'", "'invalid'")
    for text in (invalid, CREATE.replace(SOURCE, "no.such"), CREATE.replace(");", ""), f"{CREATE} SELECT 'a"):
        _, document = api.failed("/ksql", {"ksql": text})
        assert "guarded" not in json.dumps(document), text
    _, document = api.failed("/query", {"ksql": CREATE})
    assert "guarded" not in json.dumps(document)


def test_the_postgresql_protocol(world: KsqldbWorld, worker: ConnectWorker) -> None:
    assert rows(world, CREATE) == ([], "CREATE CONNECTOR", [])
    assert rows(world, CREATE.replace("CONNECTOR calls", "CONNECTOR IF NOT EXISTS calls"))[2] == [
        "Connector CALLS already exists, skipping"
    ]
    assert rows(world, "SHOW CONNECTORS")[0] == [("CALLS", "source", SOURCE, "RUNNING (1/1 tasks RUNNING)")]
    assert rows(world, "SHOW CONNECTOR PLUGINS")[0] == [(SINK, "sink", "2"), (SOURCE, "source", "1")]
    assert ("Name                 : CALLS",) in rows(world, "DESCRIBE CONNECTOR calls")[0]
    with pytest.raises(psycopg.errors.DuplicateObject):
        rows(world, CREATE)
    assert rows(world, "DROP CONNECTOR calls") == ([], "DROP CONNECTOR", [])
    with pytest.raises(psycopg.errors.UndefinedObject):
        rows(world, "DROP CONNECTOR calls")


def test_a_failed_task_shows_its_trace_without_passwords(world: KsqldbWorld, worker: ConnectWorker) -> None:
    rows(world, CREATE.replace("'topic'", "'fails'"))
    assert rows(world, "SHOW CONNECTORS")[0][0][3] == "WARNING (0/1 tasks RUNNING)"
    text = "\n".join(line for (line,) in rows(world, "DESCRIBE CONNECTOR calls")[0])
    assert "Exception: access denied" in text
    assert "guarded" not in text


def test_requests_are_repeated_while_connectors_are_distributed(world: KsqldbWorld, worker: ConnectWorker) -> None:
    worker.busy = 3
    rows(world, CREATE)
    worker.busy = 2
    assert rows(world, "DROP CONNECTOR calls")[1] == "DROP CONNECTOR"


def test_other_sessions_do_not_see_properties(world: KsqldbWorld, worker: ConnectWorker) -> None:
    with psycopg.connect(world.dsn, user="tailgate", autocommit=True) as connection:
        connection.execute(CREATE.replace("'database.password'", "'database.pw'").encode())
        shown = rows(world, f"SELECT query FROM pg_stat_activity WHERE pid = {connection.info.backend_pid}")[0]
        assert shown[0][0].startswith("CREATE SOURCE CONNECTOR calls WITH ('********'")
        assert "guarded" not in shown[0][0]


def test_superusers_only(world: KsqldbWorld, worker: ConnectWorker) -> None:
    rows(world, "CREATE ROLE clerk LOGIN")
    try:
        for text in (CREATE, "DROP CONNECTOR calls", "SHOW CONNECTORS", "SHOW CONNECTOR PLUGINS", "DESCRIBE CONNECTOR calls"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied to use connectors"):
                rows(world, text, "clerk")
    finally:
        rows(world, "DROP ROLE clerk")  # with such a role, unknown users are not admitted
    assert worker.requests == []


def test_outside_of_blocks_only(world: KsqldbWorld, worker: ConnectWorker) -> None:
    with psycopg.connect(world.dsn, user="tailgate") as connection, pytest.raises(psycopg.errors.ActiveSqlTransaction):
        connection.execute(CREATE.encode())
    assert worker.connectors == {}


@pytest.mark.parametrize(
    ("url", "sqlstate", "message"),
    [
        ("", "55000", "there is no Kafka Connect for statements of ksqlDB"),
        ("http://ann:guarded@127.0.0.1:1", "08006", "Kafka Connect at http://127.0.0.1:1 does not answer"),
        ("kafka:9092", "22023", "is not the URL of Kafka Connect"),
    ],
)
def test_without_kafka_connect_only_these_statements_fail(
    world: KsqldbWorld, monkeypatch: pytest.MonkeyPatch, url: str, sqlstate: str, message: str
) -> None:
    monkeypatch.setattr(world.engine._statements, "_connectors", Connectors(Endpoints(connect=url)))
    for text in (CREATE, "SHOW CONNECTORS"):
        with pytest.raises(psycopg.Error, match=message) as error:
            rows(world, text)
        assert error.value.sqlstate == sqlstate
        assert "guarded" not in str(error.value)
    assert rows(world, "SHOW STREAMS")[0]
