"""Idempotency-Keys: a request with a key is executed once, and a repeated one gets the same response.

    key, SHA-256 of the request ──► a row of pg_endpoint.idempotency_keys with the response, written together with the request's rows

The row and the rows of the statement are one write, so the inbox has both or none. Optimistic concurrency control makes the key unique
over all gateways: of two requests with one key, the engine refuses the second, which then finds the row of the first (ADR 0023).

Source: IETF draft "The Idempotency-Key HTTP Header Field", version 06.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from tailgate.gateway.http.messages import HttpError, Request
from tailgate.gateway.serving.fetching import fetched
from tailgate.gateway.writes.constraints.keys import all_hashes
from tailgate.gateway.writes.constraints.rules import Rules
from tailgate.gateway.writes.effects import Effect
from tailgate.gateway.writes.rows.modifiers import fitted
from tailgate.lake.catalog import Endpoint
from tailgate.lake.catalog.roles import Role
from tailgate.lake.errors import ConfigurationLimitExceeded, InvalidParameterValue, ProgramLimitExceeded
from tailgate.lake.tables.weights import net, weighted
from tailgate.lake.types import arrow_schema

KEY = re.compile(rb"[\x20-\x7e]{1,255}")
RESPONSE_BYTES_MAX = 64 * 1024  # of a response that is kept with its key: each gateway has all of them in memory
KEYS_OF_ROLE_MAX = 250_000  # that are kept of one role, within the accuracy of EXPIRE_S
EXPIRE_S = 60.0  # between two removals of expired keys
EXPIRED_MAX = 1_000  # keys that are removed at once


@dataclass(frozen=True, slots=True)
class Key:
    """The Idempotency-Key of a request. `request`: the SHA-256 of its target and body. `keep_ms`: how long it is kept."""

    endpoint: int
    role: int
    text: str
    request: str
    keep_ms: int


@dataclass(frozen=True, slots=True)
class Kept:
    """The response to an earlier request with a key."""

    status: int
    body: bytes


def key_of(request: Request, endpoint: Endpoint, role: Role) -> Key | None:
    """Returns the key of a request, or None if it has none. Raises an HttpError with 400 for one that is not valid."""
    text = request.headers.get(b"idempotency-key")
    if text is None:
        return None
    if not KEY.fullmatch(text):
        raise HttpError(400, InvalidParameterValue("invalid Idempotency-Key", hint="It has 1 to 255 printable characters of ASCII."))
    target = f"{request.path}?{request.query}".encode("latin-1")
    digest = hashlib.sha256(b"%d %s%s" % (len(target), target, request.body)).hexdigest()
    return Key(endpoint.id, role.id, text.decode(), digest, endpoint.keys_ms)


class Keys:
    """The keys in the mirror of this gateway. `counts`: of each role, as of the last removal of expired keys."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    def find(self, cursor: duckdb.DuckDBPyConnection, rules: Rules, key: Key) -> tuple[Kept | None, pa.Table]:
        """Returns the response that is kept for a key, and the row of the key if it is expired.

        Raises an HttpError with 422 if the key belongs to another request, and 429 if the role has too many keys.
        """
        columns = ", ".join(f"c{i}" for i in range(len(rules.table.columns)))
        where = f"FROM r{rules.table.id} WHERE c0 = $1 AND c1 = $2 AND c2 = $3"
        values = [key.endpoint, key.role, key.text]
        row = cursor.execute(f"SELECT c3, c4, c5, epoch_ms(c6) {where}", values).fetchone()
        if row is not None and row[3] > _now_ms():
            if row[0] != key.request:
                hint = "Send a new key with each new request."
                raise HttpError(422, InvalidParameterValue("the Idempotency-Key belongs to another request", hint=hint))
            return Kept(row[1], row[2].encode()), _no_rows(rules)
        if self.counts.get(key.role, 0) >= KEYS_OF_ROLE_MAX:
            detail = f"A role may have {KEYS_OF_ROLE_MAX} keys."
            raise HttpError(429, ConfigurationLimitExceeded("too many idempotency keys", detail=detail))
        if row is None:
            return None, _no_rows(rules)
        return None, _rows(cursor, rules, f"SELECT {columns} {where}", values)

    def effect(self, rules: Rules, key: Key, status: int, body: bytes, expired: pa.Table) -> Effect:
        """Returns the effect of keeping a response. Raises 54000 for a response that is too large."""
        if len(body) > RESPONSE_BYTES_MAX:
            raise ProgramLimitExceeded(f"the response to a request with an Idempotency-Key may have at most {RESPONSE_BYTES_MAX} bytes")
        until = (_now_ms() + key.keep_ms) * 1000
        values = (key.endpoint, key.role, key.text, key.request, status, body.decode(), until)
        schema = arrow_schema(rules.table.columns)
        new = pa.table([pa.array([value], field.type) for value, field in zip(values, schema, strict=True)], schema=schema)
        return _effect(rules, expired, new)

    def expired(self, cursor: duckdb.DuckDBPyConnection, rules: Rules) -> Effect | None:
        """Returns the effect of removing expired keys, or None if there are none. Counts the keys of each role."""
        relation, columns = f"r{rules.table.id}", ", ".join(f"c{i}" for i in range(len(rules.table.columns)))
        self.counts = dict(cursor.execute(f"SELECT c1, count(*) FROM {relation} GROUP BY c1").fetchall())
        rows = _rows(cursor, rules, f"SELECT {columns} FROM {relation} WHERE epoch_ms(c6) <= $1 LIMIT {EXPIRED_MAX}", [_now_ms()])
        return _effect(rules, rows, rows.slice(0, 0)) if rows.num_rows else None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _no_rows(rules: Rules) -> pa.Table:
    return arrow_schema(rules.table.columns).empty_table()


def _rows(cursor: duckdb.DuckDBPyConnection, rules: Rules, sql: str, values: list[object]) -> pa.Table:
    schema = pa.schema([pa.field(f"c{i}", c.type.arrow) for i, c in enumerate(rules.table.columns)])
    return fitted(fetched(cursor.execute(sql, values), schema), rules.table.columns)


def _effect(rules: Rules, old: pa.Table, new: pa.Table) -> Effect:
    """Returns the effect of removing and adding keys. It reads only these keys, so other keys do not conflict with it."""
    table = rules.table.id
    changes = net(pa.concat_tables([weighted(old, -1), weighted(new, 1)]))
    return Effect(0, {table: changes}, {table: all_hashes(rules.keys, pa.concat_tables([old, new]))}, rules={table: rules})
