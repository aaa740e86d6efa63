"""Replaces the tables of mirrors that have many old rows, or need an index, by copies, on a thread.

    copy at an entry ──► index ──► later entries ──► with the lock of the mirrors: the rest; the copy in place of the table

The follower thread updates the table until then.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager

import duckdb

from tailgate.gateway.mirrors import mirror
from tailgate.gateway.mirrors.mirrored import Mirrored
from tailgate.gateway.mirrors.sandbox import Sandbox
from tailgate.gateway.mirrors.tables import Table, Tables

log = logging.getLogger("tailgate.serving")

CatchUp = Callable[[duckdb.DuckDBPyConnection, Sequence[Table], int], int]  # applies the entries after one; returns the last one
Reading = Callable[[Collection[int]], AbstractContextManager[None]]


class Copies:
    """The copies of the tables of mirrors, which `filling` runs.

    `lock`, `reading`: of the mirrors. `catch_up` leaves few entries to the holder of the lock.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        tables: Tables,
        filling: Executor,
        lock: AbstractContextManager[object],
        reading: Reading,
        catch_up: CatchUp,
    ) -> None:
        self._sandbox, self._tables, self._filling, self._lock = sandbox, tables, filling, lock
        self._reading, self._catch_up = reading, catch_up

    def begin(self, mirrors: Iterable[Mirrored]) -> None:
        """Starts to copy those tables of changed mirrors that need it. The holder of the lock calls it."""
        for entry in mirrors:
            for table in entry.tables.values():
                if table.is_outgrown:
                    table.is_being_copied = True
                    self._filling.submit(self.copy, entry, table)

    def copy(self, entry: Mirrored, table: Table) -> None:
        """Replaces a table by a copy."""
        relation = table.shape.relation
        connection, copied = self._sandbox.cursor(), None
        try:
            with self._reading((relation,)):  # until the end, so that the table lacks no changes when it is replaced
                connection.begin()
                ((n,),) = connection.execute("SELECT n FROM clock").fetchall()  # the entry of the rows that the transaction reads
                copied = self._tables.copy(connection, table)
                connection.commit()
                self._tables.build_index(connection, copied)
                n = self._catch_up(connection, [copied], n)
                with self._lock:
                    if entry.moving and entry.tables.get(relation) is table:
                        self._catch_up(connection, [copied], n)
                        connection.begin()
                        exchanged = self._tables.exchange(connection, table, copied)
                        connection.commit()
                        entry.tables[relation], copied = exchanged, None
        except Exception:
            if entry.moving:  # a mirror that was dropped meanwhile needs no copy
                log.exception("the table of a mirror could not be copied; it keeps the memory of its old rows")
            table.changes, table.is_being_copied, table.copy_failed = 0, False, True
        finally:
            with contextlib.suppress(duckdb.Error):  # if no transaction is open
                connection.rollback()
            if copied is not None:
                mirror.drop(connection, copied.shape)
            connection.close()
