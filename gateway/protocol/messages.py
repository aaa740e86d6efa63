"""What a client says, as frozen values. Names and field order are those of PostgreSQL's chapter "Message Formats".

Texts of statements and values of parameters stay bytes: they are keys of caches before they are anything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class StartupMessage:
    """`version` is (major, minor); `parameters` holds user, database and settings as sent."""

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
    """Formats are 0 (text) and 1 (binary): none for all text, one for all, or one each."""

    portal: str
    statement: str
    parameter_formats: tuple[int, ...]
    parameters: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Describe:
    """`kind` is 'S' for a statement, 'P' for a portal."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    """`max_rows` 0 means all."""

    portal: str
    max_rows: int


@dataclass(frozen=True, slots=True)
class Close:
    """`kind` is 'S' for a statement, 'P' for a portal."""

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
    """Also SASLInitialResponse and SASLResponse, which share its letter."""

    body: bytes


@dataclass(frozen=True, slots=True)
class FunctionCall:
    body: bytes


@dataclass(frozen=True, slots=True)
class Malformed:
    """A frame that cannot be read. `letter` is its type, or "" before the first statement.

    `fatal`: where the next frame begins is not known, or nobody may go on after it; the connection ends.
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

# what belongs to the extended protocol: an error in one of these is followed by discarding until Sync
EXTENDED = (Parse, Bind, Describe, Execute, Close, Flush)
