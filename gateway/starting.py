"""From the first bytes of a connection to its first ReadyForQuery: version, settings, who it is.

Source: PostgreSQL 15, chapter "Frontend/Backend Protocol", "Start-up".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.protocol import backend, startup
from gateway.protocol import messages as m
from gateway.protocol.states import Event
from gateway.settings import Settings
from lake import errors as e

if TYPE_CHECKING:
    from gateway.session import Session


def refuse_encryption(session: Session, message: m.SSLRequest | m.GSSENCRequest) -> None:
    session.out.write(backend.SSL_REFUSED)
    session.out.flush()


def cancel(session: Session, message: m.CancelRequest) -> None:
    session.gateway.cancel(message.process, message.secret)
    session.out.close()


def start(session: Session, message: m.StartupMessage) -> None:
    try:
        negotiation = startup.negotiation(message)
        session.user, session.database, asked = startup.user_and_settings(message)
        session.gateway.admit(session)
        session.settings = Settings(dict(asked))
    except startup.Refused as refused:
        session.fatal(refused.sqlstate, refused.message)
        return
    except e.TailgateError as error:
        session.fatal(error.sqlstate, error.message, error.detail, error.hint)
        return
    session.settings.fix("session_authorization", session.user)
    session.machine.happened(Event.AUTHENTICATED)
    session.told = session.settings.reported()
    session.out.write(negotiation + startup.greeting(session.told.items(), session.process, session.secret))
    session.out.flush()


def password(session: Session, message: m.PasswordMessage) -> None:
    session.fatal("08P01", "no password was asked for")
