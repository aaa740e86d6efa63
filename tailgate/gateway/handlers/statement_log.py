"""The log of statements, as the settings log_statement and log_min_duration_statement of PostgreSQL determine it.

    pid=7 role=ann application_name=psql duration: 12.345 ms  statement: SELECT …

A line has the text with secrets masked as in pg_stat_activity, and never the values of parameters.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from tailgate.gateway.session.activity import shown
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.parsing import LongWrite, ParsedStatement
from tailgate.gateway.session.statements.portals import Portal
from tailgate.sql import statements as s
from tailgate.sql.statements.kinds import KINDS, Place
from tailgate.sql.statements.statement import Prepare

log = logging.getLogger("tailgate.gateway.statements")

LOGGED_BYTES_MAX = 4096  # of a statement's text; masking a longer text would block other sessions
MODIFYING = (LongWrite, s.Insert, s.Update, s.Delete, s.Truncate, s.CopyFrom)
SELECTED = {"none": (), "ddl": ("ddl",), "mod": ("ddl", "mod"), "all": ("ddl", "mod", "all")}


def started(session: Session, statements: Iterable[ParsedStatement], what: str, text: bytes) -> bool:
    """Logs a text before it runs, if log_statement selects one of its statements. Returns whether it did."""
    levels = SELECTED[session.settings["log_statement"]]
    if not levels or not any(_level(session, statement) in levels for statement in statements):
        return False
    _write(session, f"{what}: {_text(text)}")
    return True


def ended(session: Session, what: str, text: bytes, seconds: float, *, logged: bool) -> None:
    """Logs a successful statement if it took log_min_duration_statement. `logged`: its text is in the log already."""
    limit_ms = session.settings.log_duration_ms
    if 0 <= limit_ms <= seconds * 1000:
        _write(session, f"duration: {seconds * 1000:.3f} ms" + ("" if logged else f"  {what}: {_text(text)}"))


def answered(session: Session, what: str, text: bytes, seconds: float) -> None:
    """Logs a SELECT that was answered from memory."""
    logged = session.settings["log_statement"] == "all"
    if logged:
        _write(session, f"{what}: {_text(text)}")
    ended(session, what, text, seconds, logged=logged)


def execution(portal: Portal) -> str:
    """Returns how a line names the Execute of a portal."""
    return f"execute {portal.statement or '<unnamed>'}" + (f"/{portal.name}" if portal.name else "")


def _level(session: Session, statement: ParsedStatement) -> str:
    """Returns the least value of log_statement that selects a statement."""
    if isinstance(statement, Prepare):
        return _level(session, statement.statement)
    if isinstance(statement, s.Execute):
        prepared = session.statements.get(statement.name)
        return "all" if prepared is None else _level(session, prepared.bound.statement)
    if isinstance(statement, MODIFYING):
        return "mod"
    kind = KINDS.get(type(statement))
    return "ddl" if kind is not None and kind.place in (Place.CATALOG, Place.WRITE) else "all"


def _text(text: bytes) -> str:
    return shown(text[:LOGGED_BYTES_MAX].decode(errors="ignore"))


def _write(session: Session, message: str) -> None:
    client, application = session.client, session.settings["application_name"]
    line = _line(f"pid={client.process} role={client.user} application_name={application} {message}")
    log.info("%s", line, extra={"role": client.user})


def _line(text: str) -> str:
    """Escapes line breaks and control characters, so that a client cannot forge a line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
