"""Streams of events: an object and its changes."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tailgate.gateway.http import connection, events, service
from tailgate.gateway.serving import row_changes
from testing.engine_process import until
from tests.authorization.world import World
from tests.gateway.http.conftest import Web


class Stream:
    """A stream as a client reads it."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response

    def block(self) -> dict[str, Any]:
        """Returns the fields of the next block; lines of data are joined."""
        fields: dict[str, Any] = {}
        while line := self.response.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            fields[name.rstrip(":")] = fields[name] + "\n" + value if name in fields else value
        return fields

    def next(self) -> tuple[str, str, Any]:
        """Returns kind, id and data of the next event; passes over heartbeats."""
        while "event" not in (fields := self.block()):
            assert fields, "the stream has ended"
        return fields["event"], fields.get("id", ""), json.loads(fields["data"])


@contextmanager
def stream(web: Web, path: str, **headers: str) -> Iterator[Stream]:
    client = http.client.HTTPConnection("127.0.0.1", web.port, timeout=30)
    try:
        client.request("GET", path, headers={"Accept": "text/event-stream", **{k.replace("_", "-"): v for k, v in headers.items()}})
        response = client.getresponse()
        assert (response.status, response.getheader("content-type")) == (200, "text/event-stream"), response.read()
        with response:  # it keeps the socket open
            yield Stream(response)
    finally:
        client.close()


@pytest.fixture(scope="module", autouse=True)
def endpoints(world: World) -> None:
    world.sql(
        "tailgate",
        "CREATE TABLE members (id bigint PRIMARY KEY, name text, data json)",
        "INSERT INTO members VALUES (1, 'ann', '{\"a\":\n1}'), (2, 'bob', NULL), (3, 'cem', NULL)",
        "CREATE ENDPOINT member GET '/members/:id' WITH (numbers = 'text') AS SELECT id, name, data FROM members WHERE id = :id",
        "CREATE ENDPOINT members GET '/members' AS SELECT id FROM members",
        "CREATE ENDPOINT clock GET '/clock' AS SELECT now() AS t",
        "CREATE ENDPOINT constant GET '/constant' AS SELECT 1 AS one",
        "CREATE ENDPOINT inverse GET '/inverse/:id' AS SELECT 1 / length(name) AS x FROM members WHERE id = :id",
    )


def change(web: Web, sql: str) -> str:
    """Runs a statement. Returns the time of its changes, as ids have it."""
    web.world.sql("tailgate", sql)
    return str(web.world.writer.newest.time)


def test_an_object_and_its_changes(web: Web) -> None:
    with stream(web, "/members/1") as ann:
        assert ann.next() == ("update", str(web.world.writer.newest.time), {"id": "1", "name": "ann", "data": {"a": 1}})
        change(web, "UPDATE members SET name = 'other' WHERE id = 2")
        time = change(web, "UPDATE members SET name = 'anna' WHERE id = 1")
        assert ann.next() == ("update", time, {"id": "1", "name": "anna", "data": {"a": 1}})
        time = change(web, "DELETE FROM members WHERE id = 1")
        assert ann.next() == ("delete", time, None)
        time = change(web, "INSERT INTO members VALUES (1, 'ann')")
        assert ann.next() == ("update", time, {"id": "1", "name": "ann", "data": None})


def test_a_stream_resumes_after_an_event(web: Web) -> None:
    with stream(web, "/members/2") as bob:
        _, id, _ = bob.next()
    times = [change(web, f"UPDATE members SET name = 'bob {i}' WHERE id = 2") for i in range(3)]
    with stream(web, "/members/2", Last_Event_ID=id) as bob:
        assert [bob.next()[1:] for _ in times] == [(t, {"id": "2", "name": f"bob {i}", "data": None}) for i, t in enumerate(times)]
    time = change(web, "DELETE FROM members WHERE id = 2")
    with stream(web, "/members/2", Last_Event_ID=times[-1]) as bob:
        assert bob.next() == ("delete", time, None)


def test_a_stream_resumes_with_the_whole_object_if_its_endpoint_was_replaced(web: Web) -> None:
    """Objects before and after it have different forms. Other changes of the catalog do not matter."""
    create = "CREATE OR REPLACE ENDPOINT changing GET '/changing/:id'"
    change(web, f"{create} AS SELECT name FROM members WHERE id = :id")
    with stream(web, "/changing/3") as cem:
        _, id, object = cem.next()
        assert object == {"name": "cem"}
    web.world.sql("tailgate", "COMMENT ON TABLE members IS 'people'")
    first = change(web, "UPDATE members SET name = 'c' WHERE id = 3")
    time = change(web, "UPDATE members SET name = 'cemal' WHERE id = 3")
    with stream(web, "/changing/3", Last_Event_ID=id) as cem:
        assert [cem.next(), cem.next()] == [("update", first, {"name": "c"}), ("update", time, {"name": "cemal"})]
    newest = change(web, f"{create} AS SELECT id, name FROM members WHERE id = :id")
    with stream(web, "/changing/3", Last_Event_ID=time) as cem:
        assert cem.next() == ("update", newest, {"id": 3, "name": "cemal"})
        time = change(web, "UPDATE members SET name = 'cem' WHERE id = 3")
        assert cem.next() == ("update", time, {"id": 3, "name": "cem"})
    change(web, f"{create} AS SELECT name AS n FROM members WHERE id = :id")
    newest = change(web, "DELETE FROM members WHERE id = 3")
    with stream(web, "/changing/3", Last_Event_ID=time) as cem:
        assert cem.next() == ("delete", newest, None)
        time = change(web, "INSERT INTO members VALUES (3, 'cem')")
        assert cem.next() == ("update", time, {"n": "cem"})
    web.world.sql("tailgate", "DROP ENDPOINT changing")


def test_a_stream_notices_that_a_view_below_its_endpoint_was_replaced(web: Web) -> None:
    """While it runs, and when it resumes. A view or function of another endpoint does not matter."""
    web.world.sql("tailgate", "INSERT INTO members VALUES (20, 'bob', NULL)")
    create = "CREATE OR REPLACE VIEW {} AS SELECT id, {} AS name FROM members"
    web.world.sql("tailgate", create.format("inner_names", "name"), "CREATE VIEW names AS SELECT id, name FROM inner_names")
    web.world.sql("tailgate", "CREATE FUNCTION shout(a text) RETURNS text LANGUAGE SQL AS 'SELECT upper(a)'")
    web.world.sql("tailgate", "CREATE ENDPOINT seen GET '/seen/:id' AS SELECT shout(name) AS name FROM names WHERE id = :id")
    with stream(web, "/seen/20") as bob:
        assert bob.next()[2] == {"name": "BOB"}
        web.world.sql("tailgate", create.format("other", "'x'"), "COMMENT ON VIEW names IS 'all'")
        time = change(web, "UPDATE members SET name = 'bobby' WHERE id = 20")
        assert bob.next() == ("update", time, {"name": "BOBBY"})
        web.world.sql("tailgate", create.format("inner_names", "reverse(name)"))
        kind, _, data = bob.next()
        assert (kind, data["error"]["sqlstate"]) == ("end", "55000")
    with stream(web, "/seen/20", Last_Event_ID=time) as bob:
        assert bob.next() == ("update", str(web.world.writer.newest.time), {"name": "YBBOB"})
        change(web, "UPDATE members SET name = 'bob' WHERE id = 20")
        _, time, _ = bob.next()
    web.world.sql("tailgate", "CREATE OR REPLACE FUNCTION shout(a text) RETURNS text LANGUAGE SQL AS 'SELECT lower(a)'")
    with stream(web, "/seen/20", Last_Event_ID=time) as bob:
        assert bob.next() == ("update", str(web.world.writer.newest.time), {"name": "bob"})
    web.world.sql("tailgate", "DROP ENDPOINT seen", "DROP VIEW names, inner_names, other", "DROP FUNCTION shout(text)")


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("/members/99", {}, (404, "02000")),
        ("/members", {}, (406, "0A000")),
        ("/clock", {}, (406, "0A000")),
        ("/constant", {}, (406, "0A000")),
        ("/members/3", {"Last_Event_ID": "1"}, (410, "22023")),
        ("/members/3", {"Last_Event_ID": "x"}, (400, "22023")),
        ("/members/x", {}, (400, "22P02")),
    ],
)
def test_refused_streams(web: Web, path: str, headers: dict[str, str], expected: tuple[int, str]) -> None:
    assert web.error(path, Accept="text/event-stream", **headers) == expected


def test_heartbeats_have_the_time(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (events, service):
        monkeypatch.setattr(module, "HEARTBEAT_S", 0.05)
    with stream(web, "/members/3") as cem, stream(web, "/inverse/3") as of_query:
        cem.next()
        time = change(web, "UPDATE members SET data = '1' WHERE id = 4")
        time = change(web, "INSERT INTO members VALUES (4, 'dan')")
        until(lambda: cem.block() == {"id": time})
        until(lambda: of_query.block() == {"id": time})


def test_streams_of_a_row_share_the_bytes_of_an_event(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    write = events.change_event
    monkeypatch.setattr(events, "change_event", lambda time, object: written.append(object) or write(time, object))
    with stream(web, "/members/3") as first, stream(web, "/members/3") as second, stream(web, "/members/1") as other:
        first.next(), second.next(), other.next()
        until(lambda: len(relations(web)) == 1 and relations(web)[0].count == 3)
        time = change(web, "UPDATE members SET name = 'cemal' WHERE id = 3")
        assert first.next() == second.next() == ("update", time, {"id": "3", "name": "cemal", "data": None})
    assert len(written) == 1
    until(lambda: not relations(web))


def test_streams_of_a_query_share_the_bytes_of_an_event(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = []
    encode = events.json_objects
    monkeypatch.setattr(events, "json_objects", lambda bound, table: encoded.append(table) or encode(bound, table))
    change(web, "UPDATE members SET name = 'cemal' WHERE id = 3")
    with stream(web, "/inverse/3") as first, stream(web, "/inverse/3") as second:
        first.next(), second.next()
        feeds = web.world.served.serving.followers.feeds
        until(lambda: [followers for _, followers in feeds.values()] == [2])
        time = change(web, "UPDATE members SET name = 'c' WHERE id = 3")
        assert first.next() == second.next() == ("update", time, {"x": 1})
    assert len(encoded) == 1


def test_a_change_outside_of_the_object_is_no_event(web: Web) -> None:
    web.world.sql("tailgate", "CREATE ENDPOINT named GET '/named/:id/:name' AS SELECT name FROM members WHERE id = :id AND name = :name")
    change(web, "UPDATE members SET name = 'c' WHERE id = 3")
    with stream(web, "/named/3/c") as events_of_name:
        assert events_of_name.next()[2] == {"name": "c"}
        change(web, "UPDATE members SET data = '5' WHERE id = 3")
        time = change(web, "UPDATE members SET name = 'cem' WHERE id = 3")
        assert events_of_name.next() == ("delete", time, None)
        change(web, "UPDATE members SET name = 'other' WHERE id = 3")
        time = change(web, "UPDATE members SET name = 'c' WHERE id = 3")
        assert events_of_name.next() == ("update", time, {"name": "c"})


def test_streams_of_a_role_are_limited(web: Web) -> None:
    web.world.sql("tailgate", "CREATE ROLE reader LOGIN", "GRANT EXECUTE ON ENDPOINT member TO reader")
    quota = web.server._service.streams
    quota.each, before = 2, quota.each
    try:
        with stream(web, "/members/3", Tailgate_Role="reader") as first, stream(web, "/members/1", Tailgate_Role="reader") as second:
            first.next(), second.next()
            assert web.error("/members/1", Accept="text/event-stream", Tailgate_Role="reader") == (429, "53400")
        until(lambda: not quota._open)
        with stream(web, "/members/3", Tailgate_Role="reader") as first:
            first.next()
    finally:
        quota.each = before


def test_streams_that_begin_at_once_are_limited(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request is checked before its object is read, when no stream has begun."""
    service_, read, reading = web.server._service, web.server._service._page, []

    async def gated(*arguments: Any) -> Any:
        page = await read(*arguments)
        reading.append(page)
        while len(reading) < 3:
            await asyncio.sleep(0.01)
        return page

    web.world.sql("tailgate", "CREATE ROLE eager LOGIN", "GRANT EXECUTE ON ENDPOINT member TO eager")
    monkeypatch.setattr(service_, "_page", gated)
    monkeypatch.setattr(service_.streams, "each", 2)
    clients = [http.client.HTTPConnection("127.0.0.1", web.port, timeout=30) for _ in range(3)]
    for client in clients:
        client.request("GET", "/members/3", headers={"Accept": "text/event-stream", "Tailgate-Role": "eager"})
    streams = [Stream(client.getresponse()) for client in clients]
    firsts = [each.next() for each in streams]
    assert sorted(kind for kind, _, _ in firsts) == ["end", "update", "update"]
    assert [data["error"]["sqlstate"] for kind, _, data in firsts if kind == "end"] == ["53400"]
    for each, client in zip(streams, clients, strict=True):
        each.response.close()
        client.close()


def test_many_changed_rows_reach_their_streams(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_changes, "PIECE_ROWS", 7)
    web.world.sql("tailgate", "INSERT INTO members SELECT g, 'many' FROM generate_series(1000, 1099) AS g")
    with stream(web, "/members/1003") as first, stream(web, "/members/1098") as second:
        first.next(), second.next()
        until(lambda: len(relations(web)) == 1 and relations(web)[0].count == 2)
        time = change(web, "UPDATE members SET name = 'm' || id WHERE id >= 1000")
        assert first.next() == ("update", time, {"id": "1003", "name": "m1003", "data": None})
        assert second.next() == ("update", time, {"id": "1098", "name": "m1098", "data": None})
    change(web, "DELETE FROM members WHERE id >= 1000")


def test_a_stream_that_resumes_joins_the_others(web: Web) -> None:
    """The stream reads the changes that it has missed, also while others arrive, and each once."""
    change(web, "INSERT INTO members VALUES (2, 'bob') ON CONFLICT DO NOTHING")
    with stream(web, "/members/2") as bob:
        _, id, _ = bob.next()
        names = []
        for i in range(30):
            change(web, f"UPDATE members SET name = 'resumed {i}' WHERE id = 2")
            if i % 3 == 0:
                with stream(web, "/members/2", Last_Event_ID=id) as again:
                    names.append([again.next()[2]["name"] for _ in range(i + 1)])
        assert names == [[f"resumed {n}" for n in range(i + 1)] for i in range(0, 30, 3)]
        assert [bob.next()[2]["name"] for _ in range(30)] == [f"resumed {i}" for i in range(30)]


def gated(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Holds the delivery of changes back until the event is set."""
    gate, deliver = threading.Event(), row_changes._Relation._deliver

    async def delivered(self: Any, time: int, table: Any) -> None:
        while not gate.is_set():
            await asyncio.sleep(0.01)
        await deliver(self, time, table)

    monkeypatch.setattr(row_changes._Relation, "_deliver", delivered)
    return gate


def test_a_stream_does_not_repeat_its_first_object(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first object may be newer than the changes that the other streams have got."""
    change(web, "INSERT INTO members VALUES (2, 'bob') ON CONFLICT DO NOTHING")
    with stream(web, "/members/2") as first:
        first.next()
        until(lambda: len(relations(web)) == 1 and relations(web)[0].count == 1)
        gate = gated(monkeypatch)
        earlier = change(web, "UPDATE members SET name = 'earlier' WHERE id = 2")
        with stream(web, "/members/2") as second:
            assert second.next()[1:] == (earlier, {"id": "2", "name": "earlier", "data": None})
            until(lambda: relations(web)[0].count == 2)
            gate.set()
            later = change(web, "UPDATE members SET name = 'later' WHERE id = 2")
            assert [first.next()[1], first.next()[1], second.next()[1]] == [earlier, later, later]


def test_a_heartbeat_is_not_later_than_the_events_before_it(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that resumes after a heartbeat misses no change."""
    change(web, "INSERT INTO members VALUES (2, 'bob') ON CONFLICT DO NOTHING")
    for module in (events, service):
        monkeypatch.setattr(module, "HEARTBEAT_S", 0.1)
    with stream(web, "/members/2") as bob:
        bob.next()
        until(lambda: len(relations(web)) == 1 and relations(web)[0].count == 1)
        gate = gated(monkeypatch)
        time = int(change(web, "UPDATE members SET name = 'gated' WHERE id = 2"))
        until(lambda: relations(web)[0].head == time)
        heartbeats = [bob.block() for _ in range(5)]
        gate.set()
        assert all(set(fields) == {"id"} and int(fields["id"]) < time for fields in heartbeats)
        assert bob.next()[1] == str(time)


def relations(web: Web) -> list[Any]:
    return list(web.server._service.rows._relations.values())


def test_the_last_event_says_why_a_stream_ended(web: Web) -> None:
    with stream(web, "/inverse/3") as inverse:
        inverse.next()
        change(web, "UPDATE members SET name = '' WHERE id = 3")
        kind, id, data = inverse.next()
        assert (kind, id, data["error"]["sqlstate"]) == ("end", "", "22012")
        assert b"division" not in json.dumps(data).encode()
        assert inverse.response.read() == b""
    change(web, "UPDATE members SET name = 'cem' WHERE id = 3")
    web.world.sql("tailgate", "CREATE ENDPOINT brief GET '/brief/:id' AS SELECT name FROM members WHERE id = :id")
    with stream(web, "/brief/3") as brief:
        brief.next()
        web.world.sql("tailgate", "DROP ENDPOINT brief")
        assert brief.next()[2]["error"]["sqlstate"] == "55000"


def test_slow_readers_are_disconnected(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SLOW_READER_S", 0.2)
    web.world.sql("tailgate", "INSERT INTO members VALUES (5, 'eve')")
    until(lambda: not relations(web))  # those of the streams of other tests end with their next heartbeat
    with stream(web, "/members/5") as eve:
        eve.next()
        until(lambda: len(relations(web)) == 1)
        for i in range(60):  # more than all buffers between the two ends hold
            change(web, f"UPDATE members SET name = repeat('x', 300000) || {i} WHERE id = 5")
            if not relations(web):
                break
        until(lambda: not relations(web))
