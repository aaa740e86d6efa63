"""What is said before the first statement: version, greeting, refusals.

    SSLRequest ──► S, and TLS; or N, and the client goes on in clear text or leaves
    StartupMessage 3.n ──► [NegotiateProtocolVersion] [a password] AuthenticationOk ParameterStatus… BackendKeyData ReadyForQuery

Version 3.2 differs in one thing: keys for cancelling are as long as they should be.

Source: PostgreSQL 15 and, for 3.2, 18, src/backend/postmaster/postmaster.c, ProcessStartupPacket.
"""

from __future__ import annotations

from collections.abc import Iterable

from gateway.protocol import backend
from gateway.protocol.messages import StartupMessage

MINOR_VERSION = 2  # the newest 3.x that is spoken
SECRET_BYTES = 4  # of a key for cancelling in version 3.0
SECRET_BYTES_LONG = 32  # since 3.2, PostgreSQL 18's length


class Refused(Exception):
    """A start-up that cannot go on; `sqlstate` and the message are told before the connection closes."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.sqlstate, self.message = sqlstate, message


def secret_bytes(message: StartupMessage) -> int:
    """How long a key for cancelling this client takes."""
    return SECRET_BYTES_LONG if message.version >= (3, 2) else SECRET_BYTES


def negotiation(message: StartupMessage) -> bytes:
    """What is to be said about version and protocol options: nothing when the client asks for what is spoken."""
    major, minor = message.version
    if major != 3:
        raise Refused("0A000", f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{MINOR_VERSION}")
    options = [name for name, _ in message.parameters if name.startswith("_pq_.")]
    if minor > MINOR_VERSION or options:
        return backend.negotiate_protocol_version(MINOR_VERSION, options)
    return b""


def user_and_settings(message: StartupMessage) -> tuple[str, str, list[tuple[str, str]]]:
    """User, database and the settings asked for, in order; those in `options` first.

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
    """Settings of a command line: `-c name=value`, `-cname=value`, `--name=value`; a backslash keeps a blank."""
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


def greeting(parameters: Iterable[tuple[str, str]], process: int, secret: bytes) -> bytes:
    """All that follows a successful authentication."""
    status = b"".join(backend.parameter_status(name, value) for name, value in parameters)
    return backend.AUTHENTICATION_OK + status + backend.backend_key_data(process, secret) + backend.READY_FOR_QUERY["I"]
