"""LISTEN and NOTIFY have PostgreSQL's effects, in one gateway and between two."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from tailgate.gateway.notifications import channels, exchange
from tailgate.gateway.resources.background import Background
from testing.engine_process import until
from tests.tables.world import World

Connection = psycopg.Connection[Any]
Heard = tuple[str, str, str]  # the sender, channel, payload

# (the session, its statement); the sessions `a` and `b` listen
SCRIPT = (
    ("a", "LISTEN one"),
    ("b", "LISTEN one"),
    ("b", 'LISTEN "Two words"'),
    ("b", "LISTEN one"),
    ("c", "NOTIFY one"),
    ("c", "NOTIFY one, 'payload ''quoted'' é'"),
    ("c", "NOTIFY \"Two words\", ''"),
    ("c", "NOTIFY nobody, 'x'"),
    ("a", "NOTIFY one, 'own'"),
    ("c", "SELECT pg_notify('one', 'by function'), pg_notify('Two words', NULL)"),
    ("c", "SELECT pg_notify('one', repeat('x', 7999))"),
    ("c", "SELECT pg_notify('one', repeat('x', 8000))"),
    ("c", "SELECT pg_notify('one', repeat('é', 4000))"),
    ("c", "SELECT pg_notify('', 'x')"),
    ("c", "SELECT pg_notify(NULL, 'x')"),
    ("c", "SELECT pg_notify(repeat('c', 64), 'x')"),
    ("c", "NOTIFY"),
    ("c", "NOTIFY one 'x'"),
    ("c", "LISTEN 'one'"),
    ("c", "SELECT pg_notify('one', 'undone'), current_setting('no.such')"),
    ("c", "NOTIFY one, 'first'; NOTIFY one, 'second'; NOTIFY one, 'first'"),
    ("c", "NOTIFY one, 'undone'; SELECT 1 / 0"),
    ("c", "NOTIFY one, 'committed'; COMMIT; SELECT 1 / 0"),
    ("c", "BEGIN"),
    ("c", "NOTIFY one, '1'"),
    ("c", "NOTIFY one, '2'"),
    ("c", "NOTIFY one, '1'"),
    ("c", "SAVEPOINT s"),
    ("c", "NOTIFY one, '3'"),
    ("c", "ROLLBACK TO s"),
    ("c", "NOTIFY one, '4'"),
    ("c", "COMMIT"),
    ("c", "BEGIN"),
    ("c", "NOTIFY one, 'undone'"),
    ("c", "ROLLBACK"),
    ("c", "BEGIN"),
    ("c", "NOTIFY one, 'undone'"),
    ("c", "SELECT 1 / 0"),
    ("c", "COMMIT"),
    ("c", "NOTIFY one, 'after'"),
    ("b", "BEGIN"),
    ("c", "NOTIFY one, 'while b is in a block'"),
    ("b", "SELECT 1"),
    ("b", "LISTEN three"),
    ("b", "UNLISTEN one"),
    ("b", "SELECT * FROM pg_listening_channels() ORDER BY 1"),
    ("b", "ROLLBACK"),
    ("b", "SELECT * FROM pg_listening_channels() AS c ORDER BY c"),
    ("b", "BEGIN"),
    ("b", "LISTEN three"),
    ("b", "NOTIFY three, 'own'"),
    ("b", "COMMIT"),
    ("b", "UNLISTEN one"),
    ("c", "NOTIFY one, 'only a'"),
    ("c", "NOTIFY three, 'only b'"),
    ("b", "SELECT pg_listening_channels() AS c ORDER BY 1"),
    ("b", "UNLISTEN *"),
    ("b", "SELECT count(*) FROM pg_listening_channels()"),
    ("c", "NOTIFY three, 'nobody'"),
    ("a", "DISCARD ALL"),
    ("c", "NOTIFY one, 'nobody'"),
    ("c", "SELECT pg_notification_queue_usage() < 0.01"),  # the last ones may be on their way
    ("a", "LISTEN last"),
    ("c", "PREPARE p (text) AS SELECT pg_notify('last', $1)"),
    ("c", "EXECUTE p ('the end')"),
)


class Conversation:
    """Three sessions of one server, by name, with their notifications."""

    def __init__(self, dsn: str) -> None:
        self.sessions: dict[str, Connection] = {name: psycopg.connect(dsn, autocommit=True) for name in "abc"}
        self.names = {session.info.backend_pid: name for name, session in self.sessions.items()}
        self.heard: dict[str, list[Heard]] = {name: [] for name in self.sessions}
        for name, session in self.sessions.items():
            session.add_notify_handler(partial(self.hears, name))

    def hears(self, name: str, notification: psycopg.Notify) -> None:
        """Adds a notification of a session."""
        self.heard[name].append((self.names[notification.pid], notification.channel, notification.payload))

    def run(self) -> list[object]:
        """Returns the result of each statement."""
        results: list[object] = []
        for name, statement in SCRIPT:
            try:
                cursor = self.sessions[name].execute(statement.encode())
                results.append((cursor.statusmessage, cursor.fetchall() if cursor.description else None))
            except psycopg.Error as error:
                results.append((error.sqlstate, error.diag.message_primary))
        return results

    def hear(self, name: str, last: str) -> list[Heard]:
        """Returns the notifications of a session up to a payload."""

        def heard() -> bool:
            self.sessions[name].execute("SELECT 1")
            return last in [payload for _, _, payload in self.heard[name]]

        until(heard)
        return self.heard[name]

    def close(self) -> None:
        for session in self.sessions.values():
            session.close()


def test_as_postgresql(world: World, postgres: str) -> None:
    with closing(Conversation(postgres)) as theirs, closing(Conversation(world.dsn)) as ours:
        results = theirs.run()
        for step, expected, got in zip(SCRIPT, results, ours.run(), strict=True):
            assert got == expected, step
        assert ours.hear("a", "the end") == theirs.hear("a", "the end")
        assert ours.heard["b"] == theirs.heard["b"]
        assert ours.heard["c"] == theirs.heard["c"] == []


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("notifications") / "lake", gateways=2)
    yield world
    world.close()


def test_sessions_of_another_gateway_hear(two: World) -> None:
    """Their order is that of the sender, and the rows of its transactions are readable."""
    with psycopg.connect(two.gateways[0].dsn, autocommit=True) as sender, psycopg.connect(two.gateways[1].dsn, autocommit=True) as listener:
        sender.execute("CREATE TABLE jobs (id int PRIMARY KEY)")
        listener.execute("LISTEN jobs")
        for id in range(30):
            with sender.transaction():
                sender.execute("INSERT INTO jobs VALUES (%s)", [id])
                sender.execute("SELECT pg_notify('jobs', %s)", [str(id)])
        sender.execute("SELECT pg_notify('jobs', %s)", ["\1" * 7999])
        expected = [*map(str, range(30)), "\1" * 7999]
        payloads = []
        for notification in listener.notifies(timeout=30, stop_after=31):
            payloads.append(notification.payload)
            assert notification.pid == sender.info.backend_pid
            if len(payloads) <= 30:
                assert listener.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert payloads == expected
        assert listener.execute("SELECT count(*) FROM jobs").fetchone() == (30,)


def test_a_client_that_waits_hears_at_once(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as listener, psycopg.connect(world.dsn, autocommit=True) as sender:
        listener.execute("LISTEN one")
        timer = threading.Timer(0.2, lambda: sender.execute("NOTIFY one, 'x'"))
        timer.start()
        assert [n.payload for n in listener.notifies(timeout=30, stop_after=1)] == ["x"]
        timer.join()


def test_the_queues_are_limited(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "PENDING_BYTES_MAX", 100_000)
    monkeypatch.setattr(channels, "WAITING_BYTES_MAX", 50_000)
    with psycopg.connect(world.dsn, autocommit=True) as listener, psycopg.connect(world.dsn, autocommit=True) as sender:
        sender.execute("BEGIN")
        for number in range(19):
            sender.execute("SELECT pg_notify('one', %s || repeat('x', 5000))", [str(number)])
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="too many notifications in a transaction"):
            sender.execute("SELECT pg_notify('one', repeat('y', 5000))")
        sender.execute("ROLLBACK")
        listener.execute("LISTEN one")
        listener.execute("BEGIN")
        for number in range(15):
            sender.execute("SELECT pg_notify('one', %s || repeat('x', 5000))", [str(number)])
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="too many notifications wait for the client"):
            listener.execute("SELECT 1")
        assert sender.execute("SELECT 1").fetchone() == (1,)


class Listener:
    """The deliveries to a session, which ends after `most`."""

    def __init__(self, everyone: channels.Channels, most: int = 1 << 30) -> None:
        self.everyone, self.most, self.payloads = everyone, most, list[str]()
        everyone.add("one", self)  # type: ignore[arg-type]

    def receive(self, notification: channels.Notification) -> None:
        """Adds a notification."""
        self.payloads.append(notification.payload)
        if len(self.payloads) == self.most:
            self.everyone.remove("one", self)  # type: ignore[arg-type]


def test_a_step_of_the_event_loop_delivers_a_part() -> None:
    """A session that has left gets no further ones, and one that listens later only later ones."""
    payloads = [str(number) for number in range(1_000)]

    def sent(words: list[str]) -> list[channels.Notification]:
        return [channels.Notification("one", payload, 7) for payload in words]

    async def run() -> None:
        everyone = channels.Channels(lambda notifications, inbox: None)
        listeners, leaving = [Listener(everyone) for _ in range(20)], Listener(everyone, 600)
        counts = [0]
        everyone.send(sent(payloads), 0)
        late = Listener(everyone)
        everyone.send(sent(["last"]), 0)
        while everyone.usage:
            counts.append(sum(len(listener.payloads) for listener in (*listeners, leaving, late)))
            await asyncio.sleep(0)
        assert len(counts) > 20 * 1_000 / channels.STEP_MAX
        assert max(after - before for before, after in pairwise(counts)) <= channels.STEP_MAX
        assert all(listener.payloads == [*payloads, "last"] for listener in listeners)
        assert leaving.payloads == payloads[:600]
        assert late.payloads == ["last"]

    asyncio.run(asyncio.wait_for(run(), 30))


def test_large_transactions_arrive_in_order(two: World) -> None:
    """At a session of each gateway, outside a block and after it; the sender gets its first ones before the next statement."""
    numbers = list(range(5_000))
    with ExitStack() as stack:
        sender, near, blocked, far = (stack.enter_context(psycopg.connect(two.gateways[n].dsn, autocommit=True)) for n in (0, 0, 0, 1))
        for session in (sender, near, blocked, far):
            session.execute("LISTEN large")
        blocked.execute("BEGIN")
        sender.execute("SELECT pg_notify('large', number::text) FROM generate_series(0, 4999) AS number")
        blocked.execute("COMMIT")
        for session in (sender, near, blocked, far):
            arrived = [int(n.payload) for n in session.notifies(timeout=30, stop_after=len(numbers))]
            assert arrived == numbers


def test_a_full_queue_refuses_notifications(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as session:
        monkeypatch.setattr(channels.Channels, "usage", 1.0)
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="too many notifications in the NOTIFY queue"):
            session.execute("NOTIFY one")


@pytest.mark.parametrize("statement", [b"LISTEN two", b"UNLISTEN two"])
def test_the_channels_are_limited(statement: bytes, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "CHANNELS_MAX", 3)
    with psycopg.connect(world.dsn, autocommit=True) as session:
        session.execute("BEGIN")
        for _ in range(3):
            session.execute(statement)
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="too many channels"):
            session.execute(statement)


def test_a_full_queue_to_other_gateways_loses_the_rest(two: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "QUEUE_BYTES_MAX", 1_000)
    with psycopg.connect(two.gateways[0].dsn, autocommit=True) as sender, psycopg.connect(two.gateways[1].dsn, autocommit=True) as listener:
        listener.execute("LISTEN one")
        sender.execute("SELECT pg_notify('one', 'lost' || repeat('x', 2000))")
        sender.execute("NOTIFY one, 'next'")
        assert [n.payload for n in listener.notifies(timeout=30, stop_after=1)] == ["next"]
        until(lambda: sender.execute("SELECT pg_notification_queue_usage()").fetchone() == (0.0,))


def test_a_lake_that_cannot_be_read_loses_no_later_notification() -> None:
    requests: list[object] = []

    async def ask(request: dict[str, Any]) -> None:
        requests.append(request["notifications"])
        if len(requests) == 1:
            raise OSError("no answer")

    async def run() -> None:
        others = exchange.Exchange(ask, lambda inbox: asyncio.sleep(0), Background())
        for payload in ("lost", "next"):
            others.channels.send([channels.Notification("one", payload, 7)], 0)
            while others.usage:
                await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(run(), 10))
    assert requests == [[("one", "lost", 7)], [("one", "next", 7)]]
