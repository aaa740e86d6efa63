"""The log of statements, as the settings log_statement and log_min_duration_statement of PostgreSQL determine it.

    pid=7 role=ann application_name=psql duration: 12.345 ms  statement: SELECT …

A line has the text with secrets masked as in pg_stat_activity, and never the values of parameters.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.parsing import LongWrite, ParsedStatement
from tailgate.gateway.session.statements.portals import Portal
from tailgate.sql import statements as s
from tailgate.sql.lexer.secret_masking import mask_secrets
from tailgate.sql.statements.kinds import KINDS, Place
from tailgate.sql.statements.statement import Prepare

log = logging.getLogger("tailgate.gateway.statements")

LOGGED_BYTES_MAX = 4096  # of a statement's text; masking a longer text would block other sessions
MODIFYING = (LongWrite, s.Insert, s.Update, s.Delete, s.Merge, s.WithWrites, s.Truncate, s.CopyFrom, s.InsertMessage)
DEFINING = (s.AlterSystem, s.Refresh, s.Cluster, s.Silence)  # with ddl, although the session runs them
SELECTED = {"none": (), "ddl": ("ddl",), "mod": ("ddl", "mod"), "all": ("ddl", "mod", "all")}


class LoggedText:
    """A text that runs: `ended` logs its duration.

    `what` names the message, "statement" or `execution(portal)`.
    """

    def __init__(self, session: Session, what: str, text: bytes, *, logged: bool) -> None:
        self._session, self._what, self._text, self._logged = session, what, text, logged
        self._began = session.execution.activity.clock

    def ended(self) -> None:
        """Logs the duration of a successful text if it took log_min_duration_statement."""
        _log_duration(self._session, self._what, self._text, time.monotonic() - self._began, logged=self._logged)


def started(session: Session, statements: Iterable[ParsedStatement], what: str, text: bytes) -> LoggedText | None:
    """Logs a text before it runs, if log_statement selects one of its statements. Returns None if the settings log nothing."""
    if not session.settings.logs:
        return None
    levels = SELECTED[session.settings["log_statement"]]
    logged = bool(levels) and any(_level(session, statement) in levels for statement in statements)
    if logged:
        _write(session, f"{what}: {_text(text)}")
    return LoggedText(session, what, text, logged=logged)


def answered(session: Session, what: str, text: bytes, seconds: float) -> None:
    """Logs a SELECT that was answered from memory."""
    logged = session.settings["log_statement"] == "all"
    if logged:
        _write(session, f"{what}: {_text(text)}")
    _log_duration(session, what, text, seconds, logged=logged)


def execution(portal: Portal) -> str:
    """Returns how a line names the Execute of a portal."""
    return f"execute {portal.statement or '<unnamed>'}" + (f"/{portal.name}" if portal.name else "")


def _log_duration(session: Session, what: str, text: bytes, seconds: float, *, logged: bool) -> None:
    """Logs the duration of a text if it reaches the limit. `logged`: the text itself is in the log already."""
    limit_ms = session.settings.log_duration_ms
    if 0 <= limit_ms <= seconds * 1000:
        _write(session, f"duration: {seconds * 1000:.3f} ms" + ("" if logged else f"  {what}: {_text(text)}"))


def _level(session: Session, statement: ParsedStatement) -> str:
    """Returns the least value of log_statement that selects a statement."""
    if isinstance(statement, Prepare):
        return _level(session, statement.statement)
    if isinstance(statement, s.Execute):
        prepared = session.statements.get(statement.name)
        return "all" if prepared is None else _level(session, prepared.bound.statement)
    if isinstance(statement, s.Explain) and statement.analyze and isinstance(statement.target, (s.Execute, *MODIFYING)):
        return _level(session, statement.target)
    if isinstance(statement, MODIFYING):
        return "mod"
    kind = KINDS.get(type(statement))
    is_ddl = isinstance(statement, DEFINING) or (kind is not None and kind.place in (Place.CATALOG, Place.WRITE))
    return "ddl" if is_ddl else "all"


def _text(text: bytes) -> str:
    return mask_secrets(text[:LOGGED_BYTES_MAX].decode(errors="ignore"))


def _write(session: Session, message: str) -> None:
    client, application = session.client, session.settings["application_name"]
    line = _line(f"pid={client.process} role={client.user} application_name={application} {message}")
    log.info("%s", line, extra={"role": client.user})


def _line(text: str) -> str:
    """Escapes line breaks and control characters, so that a client cannot forge a line."""
    return text if text.isprintable() else "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
