"""The client's messages as frozen values, named as in PostgreSQL's chapter "Message Formats".

Statement texts and parameter values stay bytes, because they are first used as cache keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class StartupMessage:
    """The first message. `version` is (major, minor); `parameters` has user, database and settings."""

    version: tuple[int, int]
    parameters: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SSLRequest:
    pass


@dataclass(frozen=True, slots=True)
class GSSENCRequest:
    pass


@dataclass(frozen=True, slots=True)
class CancelRequest:
    process: int
    secret: bytes


@dataclass(frozen=True, slots=True)
class Query:
    text: bytes


@dataclass(frozen=True, slots=True)
class Parse:
    statement: str
    text: bytes
    parameter_oids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """A Bind message. Formats are 0 (text) or 1 (binary): none for all text, one for all, or one each."""

    portal: str
    statement: str
    parameter_formats: tuple[int, ...]
    parameters: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Describe:
    """A Describe message. `kind` is 'S' for a statement, 'P' for a portal."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    """An Execute message. `max_rows` 0 means all rows."""

    portal: str
    max_rows: int


@dataclass(frozen=True, slots=True)
class Close:
    """A Close message. `kind` is 'S' for a statement, 'P' for a portal."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Sync:
    pass


@dataclass(frozen=True, slots=True)
class Flush:
    pass


@dataclass(frozen=True, slots=True)
class Terminate:
    pass


@dataclass(frozen=True, slots=True)
class CopyData:
    data: bytes


@dataclass(frozen=True, slots=True)
class CopyDone:
    pass


@dataclass(frozen=True, slots=True)
class CopyFail:
    reason: str


@dataclass(frozen=True, slots=True)
class PasswordMessage:
    """A PasswordMessage, SASLInitialResponse or SASLResponse, which share a letter."""

    body: bytes


@dataclass(frozen=True, slots=True)
class FunctionCall:
    body: bytes


@dataclass(frozen=True, slots=True)
class Malformed:
    """An unreadable frame. `letter` is its type, or "" during start-up or if unknown.

    `fatal` ends the connection: the start of the next frame is unknown, or reading on is unsafe.
    """

    letter: str
    sqlstate: str
    reason: str
    fatal: bool


Message: TypeAlias = (
    StartupMessage
    | SSLRequest
    | GSSENCRequest
    | CancelRequest
    | Query
    | Parse
    | Bind
    | Describe
    | Execute
    | Close
    | Sync
    | Flush
    | Terminate
    | CopyData
    | CopyDone
    | CopyFail
    | PasswordMessage
    | FunctionCall
    | Malformed
)

# Messages of the extended protocol: after an error in one of them, messages are discarded until Sync.
EXTENDED = (Parse, Bind, Describe, Execute, Close, Flush)
