"""The start of a connection: protocol version, start-up parameters, and the messages before the first statement.

    SSLRequest ──► S, then TLS; or N, then the client continues without TLS or disconnects
    StartupMessage 3.n ──► [NegotiateProtocolVersion] [a password] AuthenticationOk ParameterStatus… BackendKeyData ReadyForQuery

Version 3.2 differs only in longer cancel keys.

Source: PostgreSQL 15 and, for 3.2, 18, src/backend/postmaster/postmaster.c, ProcessStartupPacket.
"""

from __future__ import annotations

from collections.abc import Iterable

from tailgate.gateway.protocol import backend
from tailgate.gateway.protocol.messages import StartupMessage

MINOR_VERSION = 2  # minor number of the newest supported version 3.x
SECRET_BYTES = 4  # length of a cancel key in version 3.0
SECRET_BYTES_LONG = 32  # length since 3.2, as in PostgreSQL 18


class Refused(Exception):
    """A start-up that fails; the client receives `sqlstate` and the message, and is disconnected."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.sqlstate, self.message = sqlstate, message


def secret_bytes(message: StartupMessage) -> int:
    """Returns the length of this client's cancel key in bytes."""
    return SECRET_BYTES_LONG if message.version >= (3, 2) else SECRET_BYTES


def negotiation(message: StartupMessage) -> bytes:
    """Returns a NegotiateProtocolVersion message, or b"" if it is not needed.

    Raises Refused for an unsupported major version.
    """
    major, minor = message.version
    if major != 3:
        raise Refused("0A000", f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{MINOR_VERSION}")
    options = [name for name, _ in message.parameters if name.startswith("_pq_.")]
    if minor > MINOR_VERSION or options:
        return backend.negotiate_protocol_version(MINOR_VERSION, options)
    return b""


def user_and_settings(message: StartupMessage) -> tuple[str, str, list[tuple[str, str]]]:
    """Returns the user, the database, and the client's settings in order, first those in `options`.

    >>> user_and_settings(StartupMessage((3, 0), (("user", "ann"), ("options", "-c geqo=off --jit=on"))))
    ('ann', 'ann', [('geqo', 'off'), ('jit', 'on')])
    """
    parameters = dict(message.parameters)
    user = parameters.pop("user", "")
    if not user:
        raise Refused("28000", "no PostgreSQL user name specified in startup packet")
    database = parameters.pop("database", "") or user
    replication = parameters.pop("replication", "")
    if replication.lower() not in ("", "off", "false", "no", "0"):
        raise Refused("0A000", "replication connections are not supported")
    settings = list(_options(parameters.pop("options", "")))
    settings += [(name, value) for name, value in parameters.items() if not name.startswith("_pq_.")]
    return user, database, settings


def _options(text: str) -> Iterable[tuple[str, str]]:
    """Yields settings of a command line: `-c name=value`, `-cname=value`, `--name=value`.

    A backslash escapes the next character, such as a space.
    """
    words: list[str] = []
    word, escaped, inside = "", False, False
    for character in text:
        if escaped:
            word, escaped = word + character, False
        elif character == "\\":
            escaped = inside = True
        elif character.isspace():
            words += [word] if inside else []
            word, inside = "", False
        else:
            word, inside = word + character, True
    words += [word] if inside else []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "-c" and at < len(words):
            word = "-c" + words[at]
            at += 1
        if word.startswith(("-c", "--")) and "=" in word:
            name, value = word[2:].split("=", 1)
            yield name.replace("-", "_"), value
        else:
            raise Refused("42601", f"invalid command-line argument for server process: {word}")


def greeting(parameters: Iterable[tuple[str, str]], process: int, secret: bytes, notices: bytes = b"") -> bytes:
    """Returns all messages that follow a successful authentication. libpq accepts no notices before the first of them."""
    status = b"".join(backend.parameter_status(name, value) for name, value in parameters)
    return backend.AUTHENTICATION_OK + notices + status + backend.backend_key_data(process, secret) + backend.READY_FOR_QUERY["I"]
