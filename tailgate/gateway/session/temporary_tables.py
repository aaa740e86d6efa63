"""The rows of a session's temporary tables, which no other session and no engine knows.

    a statement ──► an effect, pending in the transaction ──COMMIT──► `rows` ──► the next transaction begins with them

Like the uncommitted writes of a block, the rows are laid over an empty table for each transaction and, outside one, for each statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from tailgate.gateway.mirrors.overlay import UncommittedChanges
from tailgate.gateway.resources.budgets import Charge
from tailgate.gateway.session.memory import SessionMemory
from tailgate.lake.errors import ConfigurationLimitExceeded

OnCommit: TypeAlias = Literal["delete rows", "drop"]

TEMPORARY_BYTES_MAX = 256 << 20  # rows of the temporary tables of a session; they are also charged to its memory


class TemporaryTables:
    """The committed rows of temporary tables by id, and the actions of COMMIT on tables that do not keep their rows."""

    def __init__(self, memory: SessionMemory) -> None:
        self._memory = memory
        self._charged: Charge | None = None
        self.rows: Mapping[int, UncommittedChanges] = {}
        self.on_commit: dict[int, OnCommit] = {}

    def charge(self, changes: Mapping[int, UncommittedChanges], more: int = 0) -> None:
        """Charges the memory of these rows and of `more` bytes. Raises 53400 if they are more than a session may have, and 53200."""
        size = more + sum(written.changes.nbytes for written in changes.values())
        if size > TEMPORARY_BYTES_MAX:
            raise ConfigurationLimitExceeded(
                f"temporary tables of a session can keep at most {TEMPORARY_BYTES_MAX >> 20} MiB", hint="Use CREATE TABLE."
            )
        if self._charged is None:
            self._charged = Charge(self._memory.budget)
        self._charged.set(size)

    def keep(self, changes: Mapping[int, UncommittedChanges]) -> None:
        """Keeps these rows, and no others."""
        self.rows = changes
        self.charge(changes)
