"""Internal errors of one process: defects (XX000) and failures of the system (58000). No statement should end in one.

    error ──► InternalErrors.reported ──┬─► counted by error and statement template: tailgate.internal_errors
                                        ├─► logged with the template, the version and the traceback
                                        └─► returned with a hint that asks the user to report it

An exception that no code expected is a defect. Any other error is returned as it is.
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

from lake.errors import OutOfMemory, StatementTooComplex, TailgateError, from_system, of

DEFECT, SYSTEM = "XX000", "58000"
ISSUES = "https://github.com/tailgate-sql/tailgate/issues"
HINTS = {
    DEFECT: f"This is a defect of Tailgate. Report it with what the server wrote to its log: {ISSUES}",
    SYSTEM: f"If it happens again, report it with what the server wrote to its log: {ISSUES}",
}
KINDS_MAX = 1_000  # different errors that a process counts; it logs the others
TEMPLATE_CHARACTERS_MAX = 1_000
NO_THREAD = "can't start new thread"  # Python's words: there is no memory for its stack
ROOT = Path(__file__).parent.parent

log = logging.getLogger("tailgate.internal")


@cache
def version() -> str:
    """The version of Tailgate."""
    try:
        return version_of("tailgate")
    except PackageNotFoundError:
        return "unknown"


@dataclass
class Kind:
    """One kind of internal error. `error` has no values of rows: the type of an exception and where it was raised. Times are ms."""

    sqlstate: str
    error: str
    statement: str
    version: str
    count: int
    first_at: int
    last_at: int


class InternalErrors:
    """The internal errors of a process. Safe from many threads.

    `template` returns a statement's text without its literals.
    """

    def __init__(self, template: Callable[[str], str]) -> None:
        self._template = template
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self._lock = threading.Lock()

    def reported(self, error: BaseException, statement: str) -> TailgateError:
        """The error that the client gets. An internal one is counted and logged."""
        if isinstance(error, RecursionError):
            return StatementTooComplex("stack depth limit exceeded", hint="Split the statement.")
        if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and str(error) == NO_THREAD):
            return OutOfMemory("out of memory")
        if isinstance(error, OSError):
            error = from_system(error) or error
        if isinstance(error, TailgateError):
            if error.sqlstate not in HINTS:
                return error
            made = error
        else:
            made = of(DEFECT, f"internal error: {type(error).__name__}: {error}")
        hint = HINTS[made.sqlstate]
        if made.hint is None:
            made.hint = hint
        elif ISSUES not in made.hint:
            made.hint = f"{made.hint} {hint}"
        self._count(made.sqlstate, error, self._template(statement)[:TEMPLATE_CHARACTERS_MAX])
        return made

    def rows(self) -> list[dict[str, Any]]:
        """All kinds, the oldest first."""
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
        log.error("internal error %s: %s; statement: %s; version: %s", sqlstate, where, statement or "-", kind.version, exc_info=error)


def place(error: BaseException) -> str:
    """The type of an exception and the innermost line of Tailgate that it comes from; of an error with a cause, those of the cause.

    >>> place(ValueError("a value"))
    'ValueError'
    """
    seen = [error]
    while (cause := seen[-1].__cause__) is not None and cause not in seen:  # `raise e from e` is its own cause
        seen.append(cause)
    error = seen[-1]
    lines = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(ROOT)]
    name = type(error).__name__
    return f"{name} at {Path(lines[-1].filename).relative_to(ROOT)}:{lines[-1].lineno}" if lines else name
