"""Internal errors of one process: defects (XX000) and system failures (58000). No statement should cause one.

    error ──► InternalErrors.reported ──┬─► counted by error and statement template: tailgate.internal_errors
                                        ├─► logged with the template, the version and the traceback
                                        └─► returned with a hint that asks the user to report it

An unexpected exception is a defect, unless a process that this one needs has crashed: then the client gets
57P02, as from PostgreSQL. Any other error is returned unchanged.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from tailgate.lake.errors import CrashShutdown, OutOfMemory, StatementTooComplex, TailgateError, from_system, of

DEFECT, SYSTEM = "XX000", "58000"
ISSUES = "https://github.com/tailgate-sql/tailgate/issues"
HINTS = {
    DEFECT: f"This is a defect of Tailgate. Report it with what the server wrote to its log: {ISSUES}",
    SYSTEM: f"If it happens again, report it with what the server wrote to its log: {ISSUES}",
}
RESTARTING = "Check whether the statement took effect before you send it again."
KINDS_MAX = 1_000  # kinds of errors that a process counts; further ones are only logged
TEMPLATE_CHARACTERS_MAX = 1_000
NO_THREAD = "can't start new thread"  # Python's words: there is no memory for its stack
ROOT = Path(__file__).parents[3]

log = logging.getLogger("tailgate.internal")


@cache
def version() -> str:
    """Returns the version of Tailgate."""
    try:
        return version_of("tailgate")
    except PackageNotFoundError:
        return "unknown"


@dataclass
class Kind:
    """A kind of internal error. `error`: type and place of the exception, without data of rows. Times are in ms."""

    sqlstate: str
    error: str
    statement: str
    version: str
    count: int
    first_at: int
    last_at: int


class InternalErrors:
    """The internal errors of a process. Safe from many threads.

    `template` returns a statement's text without its literals. `crashed` returns whether a process that this one needs has ended.
    """

    def __init__(self, template: Callable[[str], str], crashed: Callable[[], bool] = lambda: False) -> None:
        self._template, self._crashed = template, crashed
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self._lock = threading.Lock()

    def reported(self, error: BaseException, statement: str) -> TailgateError:
        """Returns the error for the client. Counts and logs it if it is internal."""
        if isinstance(error, RecursionError):
            return StatementTooComplex("stack depth limit exceeded", hint="Split the statement.")
        if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and str(error) == NO_THREAD):
            return OutOfMemory("out of memory")
        if isinstance(error, OSError):
            error = from_system(error) or error
        if isinstance(error, TailgateError):
            if error.sqlstate not in HINTS:
                return error
            client_error = error
        elif self._crashed():
            log.warning("a statement was interrupted by the crash of a process: %s", place(error), exc_info=error)
            return CrashShutdown("the engine is restarting after a crash", hint=RESTARTING)
        else:
            client_error = of(DEFECT, f"internal error: {type(error).__name__}: {error}")
        hint = HINTS[client_error.sqlstate]
        if client_error.hint is None:
            client_error.hint = hint
        elif ISSUES not in client_error.hint:
            client_error.hint = f"{client_error.hint} {hint}"
        self._count(client_error.sqlstate, error, self._template(statement)[:TEMPLATE_CHARACTERS_MAX])
        return client_error

    def rows(self) -> list[dict[str, Any]]:
        """Returns all kinds, oldest first."""
        with self._lock:
            return [asdict(kind) for kind in self._kinds.values()]

    def _count(self, sqlstate: str, error: BaseException, statement: str) -> None:
        now, where = int(time.time() * 1000), place(error)
        with self._lock:
            kind = self._kinds.get((sqlstate, where, statement))
            if kind is None:
                kind = Kind(sqlstate, where, statement, version(), 0, now, now)
                if len(self._kinds) < KINDS_MAX:
                    self._kinds[sqlstate, where, statement] = kind
            kind.count += 1
            kind.last_at = now
        log.error(
            "internal error %s: %s; statement: %s; version: %s",
            sqlstate,
            where,
            statement or "-",
            kind.version,
            exc_info=error,
            extra={"sqlstate": sqlstate},
        )


def place(error: BaseException) -> str:
    """Returns the type of an exception and the innermost line of Tailgate in its traceback. Uses the root cause if there is one.

    >>> place(ValueError("a value"))
    'ValueError'
    """
    causes = [error]
    while (cause := causes[-1].__cause__) is not None and cause not in causes:  # `raise e from e` is its own cause
        causes.append(cause)
    error = causes[-1]
    lines = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(ROOT)]
    name = type(error).__name__
    return f"{name} at {Path(lines[-1].filename).relative_to(ROOT)}:{lines[-1].lineno}" if lines else name
