"""Foreign keys of the rows that a statement writes: their checks, and the referential actions.

    removed and changed keys ──► rows that reference them ──► CASCADE, SET NULL, SET DEFAULT: further changes, which are checked alike
                                                         └──► NO ACTION, RESTRICT: 23503, unless the key exists again after the statement
    added and changed rows   ──► the keys that they reference must exist after the statement

A check that SET CONSTRAINTS or INITIALLY DEFERRED postpones is made at COMMIT, by `check_net` on the changes of the whole block.
Concurrency control sees the reads of a check as hashes: of the key of the referenced row, and of the values of the referencing columns.

Source: PostgreSQL 15, src/backend/utils/adt/ri_triggers.c; "CREATE TABLE", REFERENCES.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import blake2b

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.mirrors import mirror
from tailgate.gateway.mirrors.incoming import registered, with_places
from tailgate.gateway.mirrors.overlay import overlaid
from tailgate.gateway.writes.constraints import keys
from tailgate.gateway.writes.constraints.hashes import hashes, salted
from tailgate.gateway.writes.constraints.reference_types import assigned, in_key_types, in_reference_types
from tailgate.gateway.writes.constraints.rules import IsDeferred, Rules, RulesByTable, immediate
from tailgate.gateway.writes.constraints.stored_rows import StoredRows
from tailgate.gateway.writes.constraints.violations import Violations
from tailgate.gateway.writes.rows.modifiers import fitted
from tailgate.gateway.writes.rows.query import Query
from tailgate.lake.catalog import Item, Table
from tailgate.lake.catalog.formats import ReferentialAction
from tailgate.lake.constraints import Key, Reference
from tailgate.lake.errors import ProgramLimitExceeded
from tailgate.lake.tables.weights import net, weighted
from tailgate.lake.types import WEIGHT, arrow_schema

CASCADES_MAX = 10_000  # changes that referential actions of one statement may cause, each of all rows that one change affects


class References:
    """The changes of one statement with those that referential actions add.

    `changes`: net changes by table. `hashes`: by table, of the keys that were read or written. `postponed`: the checks for COMMIT, as
    (id of the table, name of the constraint).
    """

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        rules: RulesByTable,
        violations: Violations,
        query: Callable[[Query], pa.Table],
        is_deferred: IsDeferred,
    ) -> None:
        self._cursor, self._rules, self._violations, self._query, self._is_deferred = cursor, rules, violations, query, is_deferred
        self._stored = StoredRows(violations.query, violations.incoming)
        self.changes: dict[int, pa.Table] = {}
        self.hashes: dict[int, list[np.ndarray]] = defaultdict(list)
        self.postponed: set[tuple[int, str]] = set()
        self._removed: list[tuple[Reference, pa.Table]] = []  # keys that must not be referenced after the statement
        self._added: list[tuple[Reference, pa.Table]] = []  # rows whose references must exist after the statement
        self._cascades = 0

    # ---- changes

    def insert(self, table: Table, rows: pa.Table) -> None:
        """Notes added rows."""
        self._note(table, weighted(rows, 1))
        for reference in self._rules[table.id].references:
            self._adds(reference, rows)

    def delete(self, table: Table, rows: pa.Table, weights: np.ndarray) -> None:
        """Notes removed rows, and carries out ON DELETE."""
        self._note(table, weighted(rows, -weights))
        for reference, default in self._rules[table.id].referring:
            self._removes(reference, default, reference.constraint.on_delete, rows, None)

    def update(self, table: Table, old: pa.Table, new: pa.Table, weights: np.ndarray) -> None:
        """Notes changed rows, and carries out ON UPDATE."""
        self._note(table, weighted(old, -weights), weighted(new, weights))
        for reference in self._rules[table.id].references:
            moved = pa.array(keys.changed(reference.columns, old, new))
            self._adds(reference, new.filter(moved))
            self._read_by_reference(reference, old.filter(moved))
        for reference, default in self._rules[table.id].referring:
            moved = pa.array(keys.changed(reference.key.columns, old, new))
            self._removes(reference, default, reference.constraint.on_update, old.filter(moved), new.filter(moved))

    def _note(self, table: Table, *parts: pa.Table) -> None:
        """Adds changes of a table, and the hashes of the keys of these rows."""
        before = [self.changes[table.id]] if table.id in self.changes else []
        self.changes[table.id] = net(pa.concat_tables([*before, *parts]))
        rules = self._rules[table.id]
        self.hashes[table.id] += [keys.all_hashes(rules.keys, self._stored.keyed(rules, part)) for part in parts]
        if len(parts) == 1:  # of an update, only the references that change are noted
            for reference in rules.references:
                self._read_by_reference(reference, parts[0])

    # ---- referencing rows

    def _adds(self, reference: Reference, rows: pa.Table) -> None:
        rows = rows.filter(pa.array(keys.checked(reference, rows)))
        if not rows.num_rows:
            return
        whole = rows.filter(pa.array(keys.present(reference.columns, rows)))
        self.hashes[reference.referenced.id].append(salted(hashes(in_key_types(reference, whole)), reference.key.index))
        self._read_by_reference(reference, rows)
        self._added.append((reference, rows))

    def _read_by_reference(self, reference: Reference, rows: pa.Table) -> None:
        """Notes that rows with these values in the columns of a foreign key were read or written."""
        rows = rows.filter(pa.array(keys.present(reference.columns, rows)))
        self.hashes[reference.table.id].append(salted(hashes(in_key_types(reference, rows)), _salt(reference)))

    # ---- referenced rows

    def _removes(self, reference: Reference, default: Query | None, action: ReferentialAction, old: pa.Table, new: pa.Table | None) -> None:
        """Carries out the action for rows that lose their keys. `new`: the rows that replace them, None if they are removed."""
        mask = pa.array(keys.present(reference.key.columns, old))
        old, new = old.filter(mask), None if new is None else new.filter(mask)
        if not old.num_rows:
            return
        values = hashes(old.select(list(reference.key.columns)))
        self.hashes[reference.table.id].append(salted(values, _salt(reference)))
        if action in ("no action", "restrict"):
            self._removed.append((reference, old))
            return
        referencing = self._referencing(reference, old)
        if not referencing.num_rows:
            return
        self._cascades += 1
        if self._cascades > CASCADES_MAX:
            raise ProgramLimitExceeded("referential actions cause too many changes", detail=f"{CASCADES_MAX} are the most.")
        table, width = reference.table, len(reference.table.columns)
        rows, weights = fitted(referencing.select(range(width)), table.columns), referencing.column(width).to_numpy()
        if action == "cascade" and new is None:
            self.delete(table, rows, weights)
            return
        after = self._replaced(reference, default, action, rows, new, referencing.column(width + 1))
        rules = self._rules[table.id]
        self._violations.allowed(rules, after)
        self._check_keys(rules, rows, after)
        self.update(table, rows, after, weights)
        if action == "set default":  # the default may be the value that was removed
            self._removed.append((reference, old))

    def _replaced(
        self,
        reference: Reference,
        default: Query | None,
        action: ReferentialAction,
        rows: pa.Table,
        new: pa.Table | None,
        places: pa.ChunkedArray,
    ) -> pa.Table:
        """Returns referencing rows with the values of the action. `places`: of the referenced row of each."""
        defaults = self._defaults(default, rows.num_rows) if default is not None and action == "set default" else None
        schema = arrow_schema(reference.table.columns)
        only = reference.constraint.set_columns if new is None else ()
        for i, column in enumerate(reference.columns):
            if only and column not in only:
                continue
            kind = schema.field(column).type
            if action == "cascade":
                assert new is not None
                key = reference.key.columns[i]
                types = reference.referenced.columns[key].type, reference.table.columns[column].type
                values = assigned(new.column(key).take(places), *types)
            elif defaults is not None:
                values = pa.chunked_array([defaults.column(i).combine_chunks().cast(kind)])
            else:
                values = pa.chunked_array([pa.nulls(rows.num_rows, kind)])
            rows = rows.set_column(column, schema.field(column), values)
        return self._stored.of(self._rules[reference.table.id], rows)

    def _defaults(self, default: Query, rows: int) -> pa.Table:
        """Returns the values of SET DEFAULT for this number of rows. Calls of sequences give each row its own."""
        if default.calls:
            return pa.concat_tables([self._query(default) for _ in range(rows)])
        return self._query(default).take(pa.array([0] * rows))

    def _check_keys(self, rules: Rules, old: pa.Table, new: pa.Table) -> None:
        old, new = self._stored.keyed(rules, old), self._stored.keyed(rules, new)
        for key in rules.keys:
            if self._is_deferred(rules.table.id, key) or not keys.changed(key.compared, old, new).any():
                continue
            again = keys.repeated(key, new)
            with self.state(rules.table) as rows:
                stored = rules.with_key_values(rows, key)
                place = int(again[0]) if len(again) else keys.moved(self._cursor, rules.fields, key, old, new, stored)
            if place is not None:
                raise self._violations.duplicate(rules, key, new.slice(place, 1))

    def _referencing(self, reference: Reference, keys_before: pa.Table) -> pa.Table:
        """Returns the rows, after the changes so far, that reference removed keys: columns, number of copies, place of the key."""
        columns = ", ".join(f"t.c{i}" for i in range(len(reference.table.columns)))
        weight = "1" if reference.table.key is not None else f"t.{WEIGHT}"
        same = keys.equal(reference.table.columns, reference.columns, "t", "g.r")
        with self.state(reference.table) as table, self._placed(in_reference_types(reference, keys_before)) as removed:
            return self._cursor.execute(
                f"SELECT {columns}, CAST(sum({weight}) AS BIGINT), min(g.place) FROM {table} AS t JOIN {removed} AS g ON {same} "
                f"GROUP BY {columns}"
            ).to_arrow_table()

    # ---- checks after the statement

    def check(self) -> None:
        """Raises 23503 if a foreign key is violated after the changes of the statement. Postpones the checks that are deferred."""
        for reference, rows in self._removed:
            restricts = "restrict" in (reference.constraint.on_delete, reference.constraint.on_update)
            if not restricts and self._is_deferred(reference.table.id, reference):
                self.postponed.add((reference.table.id, reference.name))
            else:
                self.check_removed(reference, rows)
        for reference, rows in self._added:
            if self._is_deferred(reference.table.id, reference):
                self.postponed.add((reference.table.id, reference.name))
            else:
                self.check_added(reference, rows)

    def check_removed(self, reference: Reference, rows: pa.Table) -> None:
        """Raises 23503 if a row references the key of one of these rows, and no other row has this key."""
        referencing = keys.equal(reference.table.columns, reference.columns, "t", "g.r")
        again = keys.equal(reference.referenced.columns, reference.key.columns, "p", "g.k")
        values = in_reference_types(reference, rows)
        for i, column in enumerate(reference.key.columns):
            values = values.append_column(f"k{i}", rows.column(column))
        with (
            self.state(reference.table) as table,
            self.state(reference.referenced) as referenced,
            self._placed(values) as removed,
        ):
            place = self._cursor.execute(
                f"SELECT min(place) FROM (SELECT * FROM {removed} AS g SEMI JOIN {table} AS t ON {referencing}) AS g "
                f"ANTI JOIN {referenced} AS p ON {again}"
            ).fetchone()
        if place is not None and place[0] is not None:
            raise self._violations.still_referenced(reference, rows.slice(place[0], 1))

    def check_added(self, reference: Reference, rows: pa.Table) -> None:
        """Raises 23503 if no row has the key that one of these rows references."""
        same = keys.equal(reference.referenced.columns, reference.key.columns, "p", "g.k")
        with self.state(reference.referenced) as referenced, self._placed(in_key_types(reference, rows)) as added:
            place = self._cursor.execute(f"SELECT min(place) FROM {added} AS g ANTI JOIN {referenced} AS p ON {same}").fetchone()
        if place is not None and place[0] is not None:
            raise self._violations.missing(reference, rows.slice(place[0], 1))

    def _placed(self, rows: pa.Table) -> registered:
        return registered(self._cursor, "placed", with_places(rows))

    def state(self, table: Item) -> _State:
        """Returns the rows of a table after the changes so far, as SQL within a `with` block."""
        return _State(self._cursor, table, self.changes.get(table.id))


def check_net(reference: Reference, changes: Mapping[int, pa.Table], cursor: duckdb.DuckDBPyConnection, violations: Violations) -> None:
    """Raises 23503 if the net changes of a block, which the connection shows, violate a foreign key."""
    checked = References(cursor, {}, violations, lambda query: pa.table({}), immediate)
    for table, concerned, sign, check in (
        (reference.table, partial(keys.checked, reference), 1, checked.check_added),
        (reference.referenced, partial(keys.present, reference.key.columns), -1, checked.check_removed),
    ):
        if table.id not in changes:
            continue
        net_rows = changes[table.id]
        rows = net_rows.filter(pc.equal(pc.sign(net_rows[WEIGHT]), sign)).drop_columns([WEIGHT])
        rows = rows.filter(pa.array(concerned(rows)))
        if rows.num_rows:
            check(reference, rows)


def check_net_keys(
    table: Table, key: Key, changes: Mapping[int, pa.Table], cursor: duckdb.DuckDBPyConnection, violations: Violations
) -> None:
    """Raises 23505 if the net changes of a block, which the connection shows, violate a unique constraint."""
    if table.id not in changes:
        return
    net_rows = changes[table.id]
    rows = net_rows.filter(pc.greater(net_rows[WEIGHT], 0)).drop_columns([WEIGHT])
    place = keys.shared(cursor, table, key, rows, mirror.shape(table).table)
    if place is not None:
        raise violations.duplicate_in(table, table.columns, key, rows.slice(place, 1))


class _State:
    """A table with changes on top, as SQL that is valid within a `with` block."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, table: Item, changes: pa.Table | None) -> None:
        self._shape = mirror.shape(table)
        rows = None if changes is None or not changes.num_rows else mirror.positional(self._shape, changes)
        self._changes = None if rows is None else registered(cursor, f"changes{table.id}", rows)

    def __enter__(self) -> str:
        if self._changes is None:
            return self._shape.table
        return f"({overlaid(self._shape, self._shape.table, self._changes.__enter__())})"

    def __exit__(self, *exception: object) -> None:
        if self._changes is not None:
            self._changes.__exit__(*exception)


def _salt(reference: Reference) -> int:
    """Returns the salt for the hashes of the referencing columns of a foreign key; those of the keys of an index have its id."""
    return int.from_bytes(blake2b(f"{reference.table.id} {reference.name}".encode(), digest_size=7).digest(), "big") | 1 << 56
