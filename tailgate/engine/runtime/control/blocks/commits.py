"""COMMIT of a transaction block that has changed the catalog: its changes and its rows become one entry of the log.

POST /block ──► conflict of rows? ──► conflict of definitions? ──► ids of the catalog ──► rows of existing tables?
no   ──► the entry has the change and the rows of new tables
yes  ──► the rows go through a tick (`engine.runtime.ticks.table_writes`), whose entry has the change, too
──► new views are filled ──► answer
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.control.blocks.installing import install_filled
from tailgate.engine.runtime.control.blocks.repeated_statements import answer_again
from tailgate.engine.runtime.control.control import Client
from tailgate.engine.runtime.control.turns import turn
from tailgate.engine.runtime.ticks.table_writes import TableWrites
from tailgate.engine.runtime.ticks.writes import Writes
from tailgate.lake import uncommitted
from tailgate.lake.catalog import Catalog, Table
from tailgate.lake.constraints import version
from tailgate.lake.control import BlockCommit, Part, Write
from tailgate.lake.errors import UndefinedTable
from tailgate.lake.log.entry import stream
from tailgate.lake.tables.weights import formed, net
from tailgate.lake.types import arrow_schema
from tailgate.lake.uncommitted import is_local
from tailgate.lake.writer.inbox import TABLE, Record


class Commits:
    """Answers `POST /block`. Thread safe: it holds the lock of the catalog and keeps other writes back."""

    def __init__(self, installation: Installation, writes: Writes) -> None:
        self._installation, self._writes = installation, writes

    def __call__(self, body: bytes, client: Client) -> dict[str, Any]:
        """Commits a block. Returns the answer; raises 40001, 42P07 or 42P06 without any effect."""
        request = BlockCommit.decode(body)
        block, engine = request.block, self._installation.engine
        if (answer := answer_again(self._installation, "COMMIT", client)) is not None:
            return answer
        existing = replace(request.write, parts=tuple(part for part in request.write.parts if not is_local(part.table)))
        with turn(self._installation, client), self._accepted(existing) as conflict:
            if conflict:
                return {"conflict": conflict}
            before = engine.catalog
            block.check(before)
            if any(p.version and p.table not in block.changed and p.version != version(before[p.table], before) for p in existing.parts):
                raise uncommitted.conflict()
            change, ids = block.renumbered(before)
            after = before.apply(change)
            rows = {ids.get(part.table, part.table): _rows(part) for part in request.write.parts if part.changes}
            new = [(id, _formed(rows[id], after, id)) for id in sorted(rows) if id not in before.items and id in after.items]
            written = self._written(existing, rows, before, after)
            installed = install_filled(self._installation, change, client, lambda: new, written)
        return installed.answer("COMMIT", client)

    @contextmanager
    def _accepted(self, write: Write) -> Iterator[int]:
        if any(relation not in self._installation.engine.catalog.items for relation in (*write.reads, *(p.table for p in write.parts))):
            raise uncommitted.conflict()  # another transaction has dropped a relation that the block has read or written
        if not write.parts and not write.reads:
            yield 0
            return
        with self._writes.accepted(write) as conflict:
            yield conflict

    def _written(self, write: Write, rows: Mapping[int, pa.Table], before: Catalog, after: Catalog) -> TableWrites | None:
        """Returns the rows of tables that exist before and after the block, or None if there are none."""
        parts = [part for part in write.parts if part.changes and part.table in after.items]
        if not parts:
            return None
        narrow = [net(_formed(rows[p.table], before, p.table)) for p in parts]  # views do not see columns that the block adds
        records = [Record(f"{TABLE}{p.table}", p.keys.tobytes(), stream(r)) for p, r in zip(parts, narrow, strict=True)]
        formed_rows = {part.table: _formed(rows[part.table], after, part.table) for part in parts}
        return TableWrites(records, formed_rows, lambda number: self._writes.durable(number, parts))


def _rows(part: Part) -> pa.Table:
    return pa.ipc.open_stream(part.changes).read_all()


def _formed(rows: pa.Table, catalog: Catalog, table: int) -> pa.Table:
    item = catalog.items.get(table)
    if not isinstance(item, Table):
        raise UndefinedTable("a table of the transaction does not exist")
    return formed(rows, arrow_schema(item.columns, weight=True))
