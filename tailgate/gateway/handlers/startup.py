"""The start-up of a connection, up to its first ReadyForQuery: TLS, protocol version, authentication, settings.

    SSLRequest ──► S, and TLS; or N ──► StartupMessage ──► authentication.decide ──► [SCRAM] ──► admitted: greeting

Source: PostgreSQL 15, chapter "Frontend/Backend Protocol", "Start-up".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from tailgate.gateway.protocol import backend, scram, startup
from tailgate.gateway.protocol import messages as m
from tailgate.gateway.protocol.states import Event
from tailgate.gateway.security import authentication
from tailgate.gateway.session.session import Session
from tailgate.lake import errors as e
from tailgate.lake.catalog.roles import PUBLIC_ID, Role

log = logging.getLogger("tailgate.gateway")

SASL, SASL_CONTINUE, SASL_FINAL = 10, 11, 12  # kinds of Authentication messages
FAILED_S = 0.2  # delay after a wrong password: limits guesses to five a second per connection


def encrypt(session: Session, message: m.SSLRequest) -> None:
    tls = session.gateway.tls
    if tls is None or session.client.peer.tls:
        refuse_encryption(session, message)
        return
    session.out.write(backend.SSL_ACCEPTED)
    session.out.flush()
    session.out.encrypt(tls.current())


def refuse_encryption(session: Session, message: m.SSLRequest | m.GSSENCRequest) -> None:
    session.out.write(backend.SSL_REFUSED)
    session.out.flush()


def cancel(session: Session, message: m.CancelRequest) -> None:
    session.gateway.cancel(message.process, message.secret)
    session.out.close()


def start(session: Session, message: m.StartupMessage) -> Awaitable[None] | None:
    try:
        negotiation = startup.negotiation(message)
        client = session.client
        client.secret_bytes = startup.secret_bytes(message)
        client.user, client.database, client.startup_settings = startup.user_and_settings(message)
        decision = authentication.decide(session.serving.progress.catalog, client.user, client.peer, session.gateway.secret)
        if isinstance(decision, authentication.Challenged):
            client.challenged = decision
            session.out.write(negotiation + backend.authentication(SASL, decision.exchange.mechanisms))
            session.out.flush()
            return None
        session.out.write(negotiation)
        return _admit(session, decision.role)
    except startup.Refused as refused:
        session.fatal(refused.sqlstate, refused.message)
    except e.TailgateError as error:
        session.fatal(error.sqlstate, error.message, error.detail, error.hint)
    return None


def password(session: Session, message: m.PasswordMessage) -> Awaitable[None] | None:
    challenged = session.client.challenged
    if challenged is None:
        session.fatal("08P01", "no password was asked for")
        return None
    exchange = challenged.exchange
    try:
        if not exchange.began:
            session.out.write(backend.authentication(SASL_CONTINUE, exchange.first(message.body)))
            session.out.flush()
            return None
        signature = exchange.final(message.body)
        if challenged.role is None:
            raise scram.WrongPassword
        session.out.write(backend.authentication(SASL_FINAL, signature))
        session.client.challenged = None
        return _admit(session, challenged.role)
    except scram.Refused as refused:
        session.fatal(refused.sqlstate, refused.message)
    except scram.WrongPassword:
        session.client.challenged = None
        return _failed(session)
    except e.TailgateError as error:
        session.fatal(error.sqlstate, error.message, error.detail, error.hint)
    return None


async def _failed(session: Session) -> None:
    log.warning("password authentication failed for user %r from %s", session.client.user, session.client.peer.host)
    await asyncio.sleep(FAILED_S)
    session.fatal(e.InvalidPassword.sqlstate, f'password authentication failed for user "{session.client.user}"')


def _admit(session: Session, role: int) -> Awaitable[None] | None:
    """Completes the sign-in as the role with this id: applies the settings, counts its sessions, and sends the greeting."""
    client, settings = session.client, session.settings
    client.role = role
    signed_in = session.access.role
    authentication.check_admitted(signed_in, session.serving.progress.catalog, client.database)
    settings.fix("session_authorization", client.user)
    settings.fix("is_superuser", "on" if signed_in.superuser else "off")
    warnings = _configure(session, signed_in)
    settings.start(dict(client.startup_settings))
    settings.fix("ssl", "on" if session.gateway.tls is not None else "off")
    session.sign_in()  # the startup message may have set `role`
    if signed_in.connection_limit >= 0 and not signed_in.superuser:
        return _within_limit(session, signed_in, warnings)
    _greet(session, warnings)
    return None


async def _within_limit(session: Session, role: Role, warnings: bytes) -> None:
    """Sends the greeting if the sessions of the role on all gateways, with this one, are within its CONNECTION LIMIT. Else ends with 53300.

    A session is registered before it counts the others, so sessions that begin at once may all be refused, but never exceed the limit.
    """
    gateway = session.gateway
    others = await gateway.peers.ask({"do": "connections", "role": role.id})
    if gateway.sessions.count_of(role.id) + sum(answer.get("count", 0) for answer in others) > role.connection_limit:
        session.fatal(e.TooManyConnections.sqlstate, f'too many connections for role "{role.name}"')
    else:
        _greet(session, warnings)


def _greet(session: Session, warnings: bytes) -> None:
    client = session.client
    session.machine.happened(Event.AUTHENTICATED)
    session.out.write(startup.greeting(session.settings.unreported(), client.process, client.secret, warnings))
    session.out.flush()


def _configure(session: Session, role: Role) -> bytes:
    """Sets the values of ALTER ROLE ALL, ALTER DATABASE, ALTER ROLE and ALTER ROLE … IN DATABASE, with ascending priority.

    Returns a warning for each that is not valid any more.
    """
    warnings = b""
    everyone = session.serving.progress.catalog.all_roles()[PUBLIC_ID]
    for configured in (everyone.other_settings, everyone.settings, role.settings, role.other_settings):
        for name, value in configured.items():
            try:
                session.settings.set(name, value, trusted=True)
            except e.TailgateError as error:
                warnings += backend.notice_response(backend.Report("WARNING", error.sqlstate, error.message, error.detail, error.hint))
    return warnings
