"""The states of a connection, as a table of messages that are allowed in each state.

    STARTUP ──StartupMessage──► AUTHENTICATION ──(authenticated)──► READY ◄────Sync─────┐
                                                                    │ ▲                 │
                                                      Parse, Bind … │ │Sync             │
                                                                    ▼ │                 │
                                                                 EXTENDED ──(error)──► SKIPPING: all but Sync is ignored

A pair that is not in the table is a protocol violation and ends the connection. Transitions by the
server itself (an error, the end of authentication) are in `EVENTS`.

Source: PostgreSQL 15, src/backend/tcop/postgres.c: `doing_extended_query_message`, `ignore_till_sync`.
"""

from __future__ import annotations

from enum import Enum

from tailgate.gateway.protocol import messages as m


class Phase(Enum):
    """A state of the connection."""

    __hash__ = object.__hash__  # each member is a single object; Enum's own hash is slow

    STARTUP = "startup"
    AUTHENTICATION = "authentication"
    READY = "ready"
    EXTENDED = "extended"
    SKIPPING = "skipping"
    CLOSED = "closed"


class Event(Enum):
    """A transition that the server causes."""

    AUTHENTICATED = "authenticated"
    FAILED = "failed"  # the current message ended in an error
    CLOSED = "closed"


class Verdict(Enum):
    """The decision to process or to ignore a message."""

    PROCESS = "process"
    IGNORE = "ignore"


_STARTING: dict[type, Phase] = {
    m.SSLRequest: Phase.STARTUP,
    m.GSSENCRequest: Phase.STARTUP,
    m.CancelRequest: Phase.CLOSED,
    m.StartupMessage: Phase.AUTHENTICATION,
}
_AUTHENTICATING: dict[type, Phase] = {m.PasswordMessage: Phase.AUTHENTICATION, m.Terminate: Phase.CLOSED}
_SERVING: dict[type, Phase] = {
    **dict.fromkeys(m.EXTENDED, Phase.EXTENDED),
    m.Query: Phase.READY,
    m.FunctionCall: Phase.READY,
    m.Sync: Phase.READY,
    m.Terminate: Phase.CLOSED,
}
# CopyData, CopyDone and CopyFail outside COPY are ignored: they may remain from a COPY that failed.
_LEFT_OVER = (m.CopyData, m.CopyDone, m.CopyFail)

TRANSITIONS: dict[Phase, dict[type, Phase]] = {
    Phase.STARTUP: _STARTING,
    Phase.AUTHENTICATION: _AUTHENTICATING,
    Phase.READY: {**_SERVING, **dict.fromkeys(_LEFT_OVER, Phase.READY)},
    Phase.EXTENDED: {**_SERVING, **dict.fromkeys(_LEFT_OVER, Phase.EXTENDED)},
    Phase.SKIPPING: {
        **dict.fromkeys((*m.EXTENDED, *_LEFT_OVER, m.Query, m.FunctionCall, m.PasswordMessage), Phase.SKIPPING),
        m.Sync: Phase.READY,
        m.Terminate: Phase.CLOSED,
    },
    Phase.CLOSED: {},
}

IGNORED: dict[Phase, frozenset[type]] = {
    **dict.fromkeys(Phase, frozenset[type]()),
    **dict.fromkeys((Phase.READY, Phase.EXTENDED), frozenset(_LEFT_OVER)),
    Phase.SKIPPING: frozenset(TRANSITIONS[Phase.SKIPPING]) - {m.Sync, m.Terminate},
}

EVENTS: dict[tuple[Phase, Event], Phase] = {
    (Phase.AUTHENTICATION, Event.AUTHENTICATED): Phase.READY,
    (Phase.EXTENDED, Event.FAILED): Phase.SKIPPING,
    (Phase.READY, Event.FAILED): Phase.READY,
    (Phase.SKIPPING, Event.FAILED): Phase.SKIPPING,
    **{(phase, Event.CLOSED): Phase.CLOSED for phase in Phase},
}


class ProtocolError(Exception):
    """A message that is not allowed in the current state. The server reports it and disconnects."""

    sqlstate = "08P01"


class Machine:
    """The state of a connection.

    Call `accept` for each message in order, just before processing it, and `happened` for the
    outcome.
    """

    __slots__ = ("phase",)

    def __init__(self, phase: Phase = Phase.STARTUP) -> None:
        self.phase = phase

    def accept(self, message: m.Message) -> Verdict:
        phase, kind = self.phase, type(message)
        following = TRANSITIONS[phase].get(kind)
        if following is None:
            raise ProtocolError(f"{kind.__name__} message is not expected while the connection is in state {phase.value}")
        self.phase = following
        return Verdict.IGNORE if kind in IGNORED[phase] else Verdict.PROCESS

    def malformed(self, message: m.Malformed) -> Verdict:
        """Handles an unreadable frame like a message of its letter that failed."""
        if message.fatal or self.phase in (Phase.STARTUP, Phase.AUTHENTICATION):
            self.phase = Phase.CLOSED
            return Verdict.PROCESS
        if self.phase is Phase.SKIPPING and message.letter not in "SX":
            return Verdict.IGNORE
        if message.letter in "PBDECH":
            self.phase = Phase.EXTENDED
        return Verdict.PROCESS

    def happened(self, event: Event) -> None:
        self.phase = EVENTS[self.phase, event]


def diagram() -> str:
    """Returns the table as text, one line per phase, for the documentation."""
    lines = []
    for phase, row in TRANSITIONS.items():
        moves = [f"{kind.__name__}→{to.value}" for kind, to in row.items() if kind not in IGNORED[phase]]
        ignored = [kind.__name__ for kind in row if kind in IGNORED[phase]]
        lines.append(f"{phase.value}: " + " ".join(moves) + (f" (ignored: {' '.join(ignored)})" if ignored else ""))
    return "\n".join(lines)
