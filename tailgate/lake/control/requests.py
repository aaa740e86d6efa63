"""The requests of the control protocol: their paths, headers and bodies."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from urllib.parse import parse_qs

from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.lake.uncommitted import Uncommitted

VERSION = 2  # a change that the other side cannot read increases it
VERSION_HEADER = "Control-Version"
WRITE_ID_HEADER, WRITE_AGAIN_HEADER, WRITE_AFTER_HEADER = "Write-Id", "Write-Again", "Write-After"  # of an Attempt
STATEMENT, WRITE, TABLE, BLOCK, SEQUENCE, HAND_OVER = "/statement", "/write", "/table", "/block", "/sequence", "/hand-over"
PUSH, PRINT, LOCK = "/push", "/print", "/lock"
WITHDRAWAL = b"\0"  # cancels the statement of the connection
ENTRIES, RECENT, STATUS, FRESHNESS, HEALTH = "/entries", "/recent", "/status", "/freshness", "/health"
SECONDS_MAX = 86_400.0 * 366  # of a timeout
HEARTBEAT_S = 1.0  # between two lines of the stream of entries
FRESHNESS_HOLD_S = 0.8  # longest wait for a change; a later answer would not show that the engine lives
RECENT_TIMEOUT_S = 10.0  # of a request for recent data that has none


def headers(token: str) -> dict[str, str]:
    """Returns the headers of a request."""
    return {"Authorization": f"Bearer {token}", VERSION_HEADER: str(VERSION)}


def check_version(version: str | None) -> None:
    """Raises 0A000 for a request of another version of the protocol. A request without a version has the current one."""
    if version is not None and version != str(VERSION):
        raise FeatureNotSupported(
            f"control protocol version {version} is not supported",
            detail=f"The engine supports version {VERSION}.",
            hint="Run the gateways and the engine from the same release of Tailgate.",
        )


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to send a write or a statement. It is sent again if the engine ends before it answers.

    `id`: of all its attempts. `again`: an earlier engine may have accepted it. `after`: the newest entry of the log before the first
    attempt, as far as the gateway knows; the entry that it may have led to is later.
    """

    id: str = ""
    again: bool = False
    after: int = 0

    def headers(self) -> dict[str, str]:
        """Returns the header fields of the request."""
        again = {WRITE_AGAIN_HEADER: "1"} if self.again else {}
        return {WRITE_ID_HEADER: self.id, WRITE_AFTER_HEADER: str(self.after), **again}

    @staticmethod
    def of(headers: Mapping[str, str]) -> Attempt:
        """Returns the attempt of a request's header fields. Raises 22023."""
        again = headers.get(WRITE_AGAIN_HEADER) == "1"
        return Attempt(headers.get(WRITE_ID_HEADER, ""), again, _whole(headers.get(WRITE_AFTER_HEADER, "0")))


@dataclass(frozen=True, slots=True)
class StatementRequest:
    """A statement for the engine. `settings`: those on which its meaning depends, and the role. `resolution`: what its names refer to.

    `block`: the uncommitted changes of the catalog, for a statement of a transaction block. The engine then only plans the statement, and
    the answer has the changes with those of the statement.
    """

    sql: str
    settings: Mapping[str, str]
    resolution: Resolution
    block: Uncommitted | None = None

    def encode(self) -> bytes:
        """Returns the body of the request."""
        block = {} if self.block is None else {"block": self.block.to_json()}
        return json.dumps({"sql": self.sql, "settings": dict(self.settings), "resolution": self.resolution.to_json(), **block}).encode()

    @staticmethod
    def decode(body: bytes) -> StatementRequest:
        """Returns the request of a body."""
        request = json.loads(body)
        block = Uncommitted.from_json(request["block"]) if "block" in request else None
        return StatementRequest(request["sql"], request.get("settings", {}), Resolution.from_json(request["resolution"]), block)


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a write in one table: an Arrow stream of net changes, and the hashes of the keys that it read or writes.

    `changes` is empty if the write changes no row of the table. `keys`: uint64 in native byte order; empty for a table without a key.
    `version`: of the rules by which it was evaluated (`lake.constraints.version`); '' for a table that it only read.
    """

    table: int
    changes: bytes
    keys: memoryview
    version: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    """The writes of a transaction.

    `base`: the last entry of the inbox that it has seen. `reads`: the tables that it read as a whole. `reserve`: a name under which a
    write that had a conflict before reserves these tables.
    """

    base: int
    reads: tuple[int, ...]
    parts: tuple[Part, ...]
    reserve: str = ""

    def encode(self) -> bytes:
        """Returns the length (4 bytes, big-endian) and JSON, then the parts' changes and keys one after the other."""
        head = [
            {"table": part.table, "changes": len(part.changes), "keys": part.keys.nbytes, "version": part.version} for part in self.parts
        ]
        text = json.dumps({"base": self.base, "reads": list(self.reads), "reserve": self.reserve, "parts": head}).encode()
        sections = [section for part in self.parts for section in (part.changes, part.keys)]
        return b"".join([struct.pack(">I", len(text)), text, *sections])

    @staticmethod
    def decode(body: bytes) -> Write:
        """Returns the write of a body."""
        (length,) = struct.unpack_from(">I", body)
        head = json.loads(body[4 : 4 + length])
        view, at, parts = memoryview(body), 4 + length, []
        for part in head["parts"]:
            middle, end = at + part["changes"], at + part["changes"] + part["keys"]
            keys = memoryview(bytes(view[middle:end])).cast("Q")
            parts.append(Part(part["table"], bytes(view[at:middle]), keys, part["version"]))
            at = end
        return Write(head["base"], tuple(head["reads"]), tuple(parts), head.get("reserve", ""))


NEW_TABLE = 0  # the table of the part with the rows of a new table, which has no id yet


@dataclass(frozen=True, slots=True)
class FilledTable:
    """A new table with its rows, of CREATE TABLE … AS.

    `statement`: CREATE TABLE with the columns; its resolution has the names of the whole statement. `write`: the rows, and the tables
    that the query has read.
    """

    statement: StatementRequest
    write: Write

    def encode(self) -> bytes:
        """Returns the length of the statement (4 bytes, big-endian), the statement and the write."""
        statement = self.statement.encode()
        return b"".join([struct.pack(">I", len(statement)), statement, self.write.encode()])

    @staticmethod
    def decode(body: bytes) -> FilledTable:
        """Returns the table of a body."""
        (length,) = struct.unpack_from(">I", body)
        return FilledTable(StatementRequest.decode(body[4 : 4 + length]), Write.decode(body[4 + length :]))


@dataclass(frozen=True, slots=True)
class BlockCommit:
    """The COMMIT of a block that has changed the catalog. `write`: its rows, also of new tables, and its read set."""

    block: Uncommitted
    write: Write

    def encode(self) -> bytes:
        """Returns the length of the changes of the catalog (4 bytes, big-endian), these as JSON, and the write."""
        block = json.dumps(self.block.to_json()).encode()
        return b"".join([struct.pack(">I", len(block)), block, self.write.encode()])

    @staticmethod
    def decode(body: bytes) -> BlockCommit:
        """Returns the request of a body."""
        (length,) = struct.unpack_from(">I", body)
        return BlockCommit(Uncommitted.from_json(json.loads(body[4 : 4 + length])), Write.decode(body[4 + length :]))


@dataclass(frozen=True, slots=True)
class SequenceRequest:
    """A request for at most `count` values of the sequence `id`, or, with a `value`, for setting it (`called` as of setval)."""

    id: int
    count: int = 0
    value: int | None = None
    called: bool = True

    def encode(self) -> bytes:
        """Returns the body of the request."""
        return json.dumps({"id": self.id, "count": self.count, "value": self.value, "called": self.called}).encode()

    @staticmethod
    def decode(body: bytes) -> SequenceRequest:
        """Returns the request of a body."""
        request = json.loads(body)
        return SequenceRequest(request["id"], request["count"], request.get("value"), request.get("called", True))


@dataclass(frozen=True, slots=True)
class LockRequest:
    """A request for an advisory lock. `key`: one bigint or two integers. `session`: the id of its process. `waits`: until it is free."""

    key: tuple[int, ...]
    shared: bool
    waits: bool
    session: int
    role: int

    def encode(self) -> bytes:
        """Returns the body of the request."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def decode(body: bytes) -> LockRequest:
        """Returns the request of a body."""
        request = json.loads(body)
        return LockRequest(**request | {"key": tuple(request["key"])})


def freshness_path(after: int, version: int = 0) -> str:
    """Returns the path of a request for the ages of records, with ticks later than entry `after`, unless they have this `version`."""
    return f"{FRESHNESS}?after={after}&version={version}"


def decode_freshness(query: str) -> tuple[int, int]:
    """Returns the entry and the version of a request's query. Raises 22023."""
    words = parse_qs(query)
    return _whole(words.get("after", ["0"])[0]), _whole(words.get("version", ["0"])[0])


def status_path(*, lags: bool) -> str:
    """Returns the path of a request for the engine's status. `lags`: with the numbers of unread records, for which it asks brokers."""
    return STATUS if lags else f"{STATUS}?lags=no"


def decode_status(query: str) -> bool:
    """Returns whether a request's query asks for the numbers of unread records."""
    return parse_qs(query).get("lags") != ["no"]


def recent_path(relations: Iterable[int], timeout_s: float) -> str:
    """Returns the path of a request for an entry with all that Kafka holds now for these relations."""
    return f"{RECENT}?relations={','.join(map(str, sorted(relations)))}&timeout={timeout_s:g}"


def decode_recent(query: str) -> tuple[list[int], float]:
    """Returns the relations and the timeout in seconds of a request's query. Raises 22023."""
    words = parse_qs(query)
    relations = [_whole(id) for id in words.get("relations", [""])[0].split(",") if id]
    text = words.get("timeout", [str(RECENT_TIMEOUT_S)])[0]
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= SECONDS_MAX:
        raise InvalidParameterValue(f'"{text}" is not a number of seconds')
    return relations, seconds


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise InvalidParameterValue(f'"{text}" is not a number')
    return int(text)
