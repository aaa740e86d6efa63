"""Roles that try to learn a value, with a check of every byte that they receive.

boss        owns the canary value and reads it often, so that it is in caches, indexes and feeds
low, helper cooperate: they send random statements over the wire, in both protocols, and over Presto's HTTP, and requests to endpoints
"""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pyarrow as pa

from tailgate.gateway.http.server import HttpOptions
from tailgate.gateway.presto import main as presto
from tailgate.gateway.protocol.backend import frame
from tailgate.lake.catalog import ERRORS, Catalog, Table
from tailgate.lake.host.server_thread import ServerThread
from tailgate.lake.readers import reading
from tailgate.lake.types import arrow_schema
from tailgate.sql.statements import parse, split
from tests.authorization.canary import NUMBER, SPELLINGS, VERIFIER, WORD
from tests.authorization.grammar import Grammar, Step
from tests.authorization.requests import ENDPOINTS, Requests, over_presto
from tests.authorization.world import World
from tests.gateway.http.conftest import Web
from tests.wire.wire import Bind, Client, Describe, Execute, Parse, Query, Sync, cut

ANSWER_S = 120.0  # silence after which a server counts as hung
FOLLOW_MS = 60  # time limit of statements that may run forever
REQUESTS = 0.1  # the share of requests to endpoints
ATTACKERS = {"low": "lo", "helper": "he"}

SET_UP = {
    "tailgate": [
        *(f"CREATE ROLE {role} LOGIN" for role in ("boss", "low", "helper")),
        "CREATE ROLE staff",
        f"CREATE ROLE vault PASSWORD '{VERIFIER}'",
        "GRANT staff TO low, helper",
        *(f"CREATE SCHEMA {schema} AUTHORIZATION {role}" for schema, role in (("lo", "low"), ("he", "helper"), ("own", "boss"))),
        "GRANT CREATE ON SCHEMA public TO boss, low",
    ],
    "low": ["GRANT USAGE ON SCHEMA lo TO PUBLIC"],
    "helper": ["GRANT USAGE ON SCHEMA he TO PUBLIC"],
    "boss": [
        "GRANT USAGE ON SCHEMA own TO PUBLIC",
        "CREATE TABLE salaries (n bigint PRIMARY KEY, name text)",
        f"INSERT INTO salaries VALUES ({NUMBER}, '{WORD}')",
        "CREATE TABLE hidden (n bigint PRIMARY KEY, name text)",
        f"INSERT INTO hidden VALUES (1, '{WORD}'), ({NUMBER}, 'x')",
        "CREATE TABLE own.hidden (n bigint PRIMARY KEY, name text DEFAULT 'd', CHECK (n > 0))",
        f"INSERT INTO own.hidden VALUES (1, '{WORD}'), ({NUMBER}, 'x')",
        "GRANT INSERT ON own.hidden TO low, helper",
        "CREATE TABLE own.open (n bigint PRIMARY KEY, name text)",
        "GRANT SELECT, INSERT ON own.open TO low, staff",
        "CREATE MATERIALIZED VIEW m AS SELECT n, name FROM salaries",
        "CREATE MATERIALIZED VIEW own.m AS SELECT n, name FROM salaries",
        "CREATE INDEX ON own.m (n)",
        "CREATE VIEW own.kept AS SELECT n, name FROM salaries",
        "CREATE VIEW kept AS SELECT n, name FROM salaries",
        "CREATE FUNCTION f0() RETURNS bigint LANGUAGE SQL AS 'SELECT max(n) FROM salaries'",
        "CREATE MATERIALIZED VIEW own.bad AS SELECT n, name FROM salaries",
        "CREATE VIEW own.names AS SELECT count(*) AS n, 'x' AS name FROM salaries",
        "CREATE VIEW own.calls AS SELECT lo.f0() AS n, 'x' AS name UNION ALL SELECT he.f0(), 'y'",
        "CREATE MATERIALIZED VIEW own.calls_m AS SELECT lo.f0() AS n, 'x' AS name",
        "GRANT SELECT ON own.names TO low, helper",
        "GRANT SELECT ON own.calls TO low, helper",
        "GRANT SELECT ON own.calls_m TO low, helper",
        "CREATE FUNCTION own.f() RETURNS bigint LANGUAGE SQL AS 'SELECT max(n) FROM salaries'",
        "CREATE FUNCTION own.g(a bigint) RETURNS bigint LANGUAGE SQL AS 'SELECT a + max(n) FROM salaries'",
        "CREATE FUNCTION own.h() RETURNS TABLE (n bigint, name text) LANGUAGE SQL AS 'SELECT n, name FROM salaries'",
        "CREATE TABLE own.part (n bigint PRIMARY KEY, name text)",
        f"INSERT INTO own.part VALUES ({NUMBER}, 'x'), (1, 'y')",
        "GRANT SELECT (name), INSERT (n), UPDATE (name) ON own.part TO low, staff",
        "CREATE VIEW own.part_v AS SELECT n, name FROM own.part",
        "GRANT SELECT (name), UPDATE (name) ON own.part_v TO low, helper",
        "CREATE MATERIALIZED VIEW own.part_m AS SELECT n, name FROM own.part",
        "GRANT SELECT (name) ON own.part_m TO low, staff",
        "CREATE SOURCE clicks FROM KAFKA BROKER 'k' TOPIC 't' FORMAT TEXT",
        "CREATE SOURCE own.clicks FROM KAFKA BROKER 'k' TOPIC 't' FORMAT TEXT",
        f"CREATE SECRET word AS '{WORD}'",
        f"CREATE SECRET own.word AS '{WORD}'",
        "CREATE CONNECTION own.far TO KAFKA (BROKER 'k', SASL MECHANISMS 'PLAIN', SASL USERNAME 'u', SASL PASSWORD SECRET own.word)",
        "CREATE SINK own.sink FROM own.m INTO KAFKA BROKER 'k' TOPIC 't' KEY (n) NOT ENFORCED FORMAT JSON ENVELOPE UPSERT",
        "CREATE SUBSCRIPTION own.sub FROM own.m",
        *ENDPOINTS,
    ],
}  # fmt: skip
# The objects that each attacker has at first, and recreates after they were dropped.
OWN = {
    **{f"t{i}": f"CREATE TABLE {{}}.t{i} (n bigint PRIMARY KEY, name text)" for i in range(2)},
    **{f"f{i}": f"CREATE FUNCTION {{}}.f{i}() RETURNS bigint LANGUAGE SQL AS 'SELECT {i}::bigint'" for i in range(2)},
    **{f"g{i}": f"CREATE FUNCTION {{}}.g{i}(a bigint) RETURNS bigint LANGUAGE SQL AS 'SELECT a + {i}'" for i in range(2)},
    **{
        f"h{i}": f"CREATE FUNCTION {{}}.h{i}() RETURNS TABLE (n bigint, name text) LANGUAGE SQL AS 'SELECT n, name FROM {{}}.t{i}'"
        for i in range(2)
    },
    **{f"v{i}": f"CREATE VIEW {{}}.v{i} AS SELECT n, name FROM {{}}.t{i % 2}" for i in range(3)},
    **{f"m{i}": f"CREATE MATERIALIZED VIEW {{}}.m{i} AS SELECT n, name FROM {{}}.t{i}" for i in range(2)},
    "b0": "CREATE SUBSCRIPTION {}.b0 FROM {}.t0",
}
# Statements of boss and the superuser between the attacks. They read their own objects and those of
# others.
CALLS = "calls"  # name prefix of boss's views that call functions of others; CASCADE may drop them
MEANWHILE = [
    ("boss", "CREATE OR REPLACE VIEW own.calls AS SELECT lo.f0() AS n, 'x' AS name UNION ALL SELECT he.f0(), 'y'"),
    ("boss", "CREATE MATERIALIZED VIEW own.calls_m AS SELECT lo.f0() AS n, 'x' AS name"),
    ("boss", "GRANT SELECT ON own.calls TO low, helper"),
    ("boss", "GRANT SELECT ON own.calls_m TO low, helper"),
    ("boss", f"SELECT name FROM salaries WHERE n = {NUMBER}"),
    ("boss", f"SELECT n, name FROM own.m WHERE n = {NUMBER}"),
    ("boss", "SELECT max(x.n)::bigint FROM salaries AS x"),
    ("boss", "TABLE salaries"),
    ("boss", "TABLE own.bad"),
    ("boss", "SELECT n, name FROM own.kept"),
    ("boss", "TABLE own.calls"),
    ("boss", "SELECT own.f(), lo.f0()"),
    ("boss", "INSERT INTO own.open SELECT count(*), 'x' FROM own.open ON CONFLICT DO NOTHING"),
    ("boss", "CREATE OR REPLACE VIEW own.names AS SELECT count(*) AS n, 'x' AS name FROM salaries"),
    ("boss", f"UPDATE hidden SET name = '{WORD}' WHERE n = 1"),
    ("tailgate", f"SELECT '{WORD}', {NUMBER}"),
    ("tailgate", "TABLE lo.v0"),
    ("tailgate", "TABLE he.v1"),
    ("tailgate", "SELECT lo.f0(), he.f1()"),
    ("tailgate", "INSERT INTO lo.t0 SELECT lo.f0(), 'x' ON CONFLICT DO NOTHING"),
    ("tailgate", "INSERT INTO he.t1 SELECT n, name FROM lo.v0 ON CONFLICT DO NOTHING"),
    ("tailgate", "SELECT * FROM tailgate.materialized_views"),
    ("tailgate", "SELECT * FROM pg_stat_activity"),
]


class Leak(AssertionError):
    """The error when a role has received the canary."""


class Attacker:
    """A session of an attacking role.

    `received` counts bytes; `kinds` counts statements by kind and outcome.
    """

    def __init__(
        self, world: World, user: str, choose: random.Random, kinds: Counter[tuple[str, str]], presto_port: int, requests: Requests
    ) -> None:
        self.world, self.user, self.kinds, self._requests = world, user, kinds, requests
        self.grammar = Grammar(choose, ATTACKERS[user])
        self.received, self.sent = 0, 0
        self._choose, self._port = choose, presto_port
        self._history: list[str] = []
        self._client: Client | None = None

    def attack(self) -> int:
        """Sends one statement, a few related ones, or a request to an endpoint. Returns their number."""
        if self._choose.random() < REQUESTS:
            return self._request()
        return self._send(self.grammar.statements())

    def repeat(self, text: str) -> int:
        """Sends a statement that another role has just sent, whose result may be cached. Returns the number of statements."""
        return self._send([Step(text)])

    def _send(self, steps: Sequence[Step]) -> int:
        for step in steps:
            self._history = [*self._history[-300:], step.text]
            self.sent += 1
            if step.text.startswith("presto:"):
                outcome = over_presto(self._port, self.user, self.grammar.schema, step.text.removeprefix("presto:"), self._look)
            else:
                outcome = self._over_wire(step)
            self.kinds[_kind(step.text), outcome] += 1
        return len(steps)

    def _request(self) -> int:
        """Sends a request to an endpoint."""
        answer = self._requests.send()
        self._history = [*self._history[-300:], answer.request]
        self.sent += 1
        self.kinds["Request", "ok" if answer.status < 300 else str(answer.status)] += 1
        self._look(answer.data)
        return 1

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _look(self, data: bytes) -> None:
        self.received += len(data)
        self._requests.received(data)
        for spelling in SPELLINGS:
            if spelling in data:
                raise Leak(f"{self.user} received {spelling!r}", data[-2000:], self._history[-40:])

    # ---- the wire -------------------------------------------------------------------------------

    def _over_wire(self, step: Step) -> str:
        if self._client is None:
            self._client = Client.connect("127.0.0.1", self.world.served.port, self.user, "shop", search_path=self._path())
        client = self._client
        if step.follows:
            client.send(Query(f"SET statement_timeout = {FOLLOW_MS}"))
            self._until_ready(client)
        if step.parameters is None:
            client.send(Query(step.text))
        else:
            binary = self._choose.randrange(2)
            client.send(
                Parse("", step.text)
                + Describe("S", "")
                + Bind("", "", list(step.parameters), [], [binary])
                + Describe("P", "")
                + Execute()
                + Sync()
            )
        outcome = self._until_ready(client)
        if step.follows and self._client is not None:
            client.send(Query("SET statement_timeout = 0"))
            self._until_ready(client)
        return outcome

    def _path(self) -> str:
        return self._choose.choice(("public", f"{self.grammar.schema}, public", "own, public"))

    def _until_ready(self, client: Client) -> str:
        """Reads the answer. Returns "ok", "closed", or the SQLSTATE of the first error."""
        outcome = ""
        while True:
            began = time.monotonic()
            message = client.message(ANSWER_S)
            if message is None:
                assert time.monotonic() - began < ANSWER_S, ("no answer", self.user, self._history[-5:])
                self.close()
                return outcome or "closed"
            letter, body = message
            self._look(body)
            if letter == "G":
                client.send(frame(b"d", b"5\tx\n") + frame(b"c", b""))
            elif letter == "E" and not (len(outcome) == 5 and outcome[0].isdigit()):
                outcome = _sqlstate(body)
            elif letter == "C" and not outcome:
                outcome = "ok"
            elif letter == "Z":
                return outcome or "ok"


def _sqlstate(body: bytes) -> str:
    at = 0
    while body[at : at + 1] not in (b"\0", b""):
        code = chr(body[at])
        value, at = cut(body, at + 1)
        if code == "C":
            return value
    return "?"


def _kind(text: str) -> str:
    try:
        (part, *more) = split(text.removeprefix("presto:"))
        kind = "several" if more else type(parse(part.text)).__name__
    except Exception:  # noqa: BLE001  # not a statement of the grammar
        kind = "other"
    return f"Presto {kind}" if text.startswith("presto:") else kind


class Attack:
    """A world, and the roles that attack it: `users`, each with two sessions."""

    def __init__(self, path: Path, seed: int, users: Sequence[str] = tuple(ATTACKERS)) -> None:
        self._users = users
        self.world = World(path / "lake")
        self._choose = random.Random(seed)
        for user, texts in SET_UP.items():
            self.world.sql(user, *texts)
            if user in ATTACKERS:
                self._restore(user)
        self._spoil()
        server = presto.Server(0, f"127.0.0.1:{self.world.served.port}")
        self._presto = ServerThread(server, "presto")
        self._presto.start()
        self.kinds: Counter[tuple[str, str]] = Counter()
        port = server.server_address[1]
        self._web, tokens = Web(self.world, HttpOptions("127.0.0.1", 0)), list[str]()
        self.attackers = []
        for user in (*users, *users):
            choose = random.Random(self._choose.random())
            self.attackers.append(Attacker(self.world, user, choose, self.kinds, port, Requests(user, choose, self._web.port, tokens)))
        self._victims = {user: self.world.connect(user, prepare_threshold=None) for user in ("boss", "tailgate")}
        self._before = self._theirs(self.world.writer.catalog)

    def _spoil(self) -> None:
        """Puts the canary into the error of `own.bad` and into every error that the engine's status quotes."""
        world = self.world
        bad = next(i for i in world.writer.catalog.visible if i.name == "bad")
        message = f'invalid input syntax for type integer: "{WORD} {NUMBER}"'
        row = pa.table([["22P02"], [message], [1]], schema=arrow_schema(ERRORS, weight=True))
        world.writer.append([(bad.errors, row)])
        status = {"status": "failing", "error": message, "last_error": message}
        world.errors = {
            "views": {"own.bad": status, "m": status},
            "sources": {"clicks": status, "own.clicks": status},
            "sinks": {"own.sink": status},
        }

    def run(self, count: int) -> None:
        """Sends `count` statements.

        Raises Leak, or AssertionError if an object of another role changed.
        """
        sent = 0
        while sent < count:
            attacker = self._choose.choice(self.attackers)
            sent += attacker.attack()
            if self._choose.random() < 0.05:
                text = self._meanwhile()
                if WORD not in text and str(NUMBER) not in text:  # these would be in the attackers' own entries of pg_stat_activity
                    sent += self._choose.choice(self.attackers).repeat(text)
            if self._choose.random() < 0.02:
                self._choose.choice(self.attackers).close()  # ends a session; the next attack starts a new one
            if self._choose.random() < 0.02:
                self._restore(self._choose.choice(self._users))
            if self._theirs(self.world.writer.catalog) != self._before:
                raise AssertionError("something that is not theirs has changed", attacker.user, attacker._history[-5:])
        self._check_rows()

    def _restore(self, user: str) -> None:
        """Recreates the objects that an attacker has dropped."""
        catalog, schema = self.world.writer.catalog, ATTACKERS[user]
        names = {i.name for i in catalog.visible if catalog.schema_of(i).name == schema}
        with self.world.connect(user) as connection:
            for name, text in OWN.items():
                if name not in names:
                    with contextlib.suppress(psycopg.Error):  # the objects that it refers to may have changed
                        connection.execute(text.replace("{}", schema).encode())

    def _meanwhile(self) -> str:
        """Runs a statement of a victim. Returns its text."""
        user, text = self._choose.choice(MEANWHILE)
        with contextlib.suppress(Exception):  # one of the attackers' views may be gone, or fail
            self._victims[user].execute(text.encode())
        self._before = self._theirs(self.world.writer.catalog)
        return text

    def _theirs(self, catalog: Catalog) -> object:
        """Returns all items, roles and schemas of other owners, and the privileges on them."""
        mine = {catalog.role(name).id for name in (*self._users, "staff")}
        items = {i.id: i for i in catalog.items.values() if i.owner not in mine and not i.name.startswith(CALLS)}
        schemas = {s.id: s for s in catalog.schemas.values() if s.owner not in mine}
        foreign = {*items, *schemas, *(s.id for s in catalog.all_schemas().values() if s.owner not in mine)}
        roles = {}
        for r in catalog.roles.values():
            roles[r.id] = (r.name, r.login, r.superuser, r.verifier, r.member_of)
        return items, schemas, roles, {id: access for id, access in catalog.access.items() if id in foreign}

    def _check_rows(self) -> None:
        """Asserts that tables without any grant have their rows."""
        lake, catalog = self.world.lake, self.world.lake.catalog()
        held = {
            (catalog.schema_of(i).name, i.name): sorted(tuple(r.values()) for r in reading.snapshot(lake, i.id).to_pylist())
            for i in catalog.visible
            if isinstance(i, Table) and i.name in ("salaries", "hidden")
        }
        assert held["public", "salaries"] == [(NUMBER, WORD, 1)], held
        assert held["public", "hidden"] == [(1, WORD, 1), (NUMBER, "x", 1)], held
        assert {(1, WORD, 1), (NUMBER, "x", 1)} <= set(held["own", "hidden"]), held

    @property
    def received(self) -> int:
        return sum(a.received for a in self.attackers)

    def close(self) -> None:
        for attacker in self.attackers:
            attacker.close()
        for victim in self._victims.values():
            victim.close()
        self._web.close()
        self._presto.stop()
        self.world.close()


def table(kinds: Counter[tuple[str, str]]) -> str:
    """Returns a table of the kinds: statements, successes, and the SQLSTATEs of the errors."""
    lines = []
    for kind in sorted({k for k, _ in kinds}):
        outcomes = {o: n for (k, o), n in kinds.items() if k == kind}
        errors = ", ".join(f"{o} {n}" for o, n in sorted(outcomes.items(), key=lambda p: -p[1]) if o != "ok")
        lines.append(f"{kind:24} {sum(outcomes.values()):6} {outcomes.get('ok', 0):6}  {errors}")
    return "\n".join(lines)
