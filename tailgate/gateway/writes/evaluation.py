"""Evaluates a write on the mirrors by PostgreSQL's rules: which rows change, and which data it read.

    plans, values, [rows of COPY] ──► DuckDB ──► rows ──► NOT NULL, CHECK ──► keys ──► Effect

It runs on a thread, with a connection that sees the tables at one time. Plans that read the rows of
the statement find them as the relation `sql.plan.writes.INCOMING`. Keys are checked after the whole
statement, not after each row, so UPDATE t SET id = id + 1 has no conflict with itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.mirrors.incoming import registered, with_places
from tailgate.gateway.mirrors.mirror import conform
from tailgate.gateway.writes.constraints.keys import all_hashes, existing, moved, others, repeated, row_hashes
from tailgate.gateway.writes.constraints.references import References
from tailgate.gateway.writes.constraints.rules import IsDeferred, Rules, RulesByTable, immediate
from tailgate.gateway.writes.constraints.shown_values import ShownValues
from tailgate.gateway.writes.constraints.stored_rows import StoredRows
from tailgate.gateway.writes.constraints.violations import Violations, of_row
from tailgate.gateway.writes.effects import Changes, Effect, Hashes, Inserted, joined, merged
from tailgate.gateway.writes.plans import ChangePlan, InsertPlan, MergePlan, TruncatePlan, WithPlan, WritePlan
from tailgate.gateway.writes.rows.modifiers import fitted
from tailgate.gateway.writes.rows.query import Query
from tailgate.gateway.writes.rows.row_queries import CallEvaluator, RowQueries
from tailgate.lake.catalog import Item, Table
from tailgate.lake.constraints import Key
from tailgate.lake.errors import CardinalityViolation
from tailgate.lake.tables.weights import net, weighted
from tailgate.lake.types import WEIGHT, Field, arrow_schema
from tailgate.sql.binder.writes.arbiters import checked_immediate
from tailgate.sql.plan.writes import CURRENT, INCOMING
from tailgate.values.codec.style import Style


class Evaluation(RowQueries):
    """The evaluation of one statement.

    `values`: of its parameters; `shown`: that errors show. `sequences` evaluates calls. `is_deferred`: whether COMMIT checks a constraint.
    """

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        values: Sequence[object],
        style: Style,
        shown: ShownValues,
        sequences: CallEvaluator | None = None,
        is_deferred: IsDeferred = immediate,
    ) -> None:
        super().__init__(cursor, values, sequences)
        self.is_deferred = is_deferred
        self.stored = StoredRows(self.query, self.incoming)
        self.violations = Violations(self.query, self.incoming, style, shown)
        self.earlier: References | None = None  # the changes of the parts of a WITH that were evaluated before
        self.changed: dict[int, list[pa.Table]] = defaultdict(list)  # by table, the rows that these parts have changed or removed

    def run(self, write: WritePlan, rows: pa.Table | None = None) -> Effect:
        """Evaluates any write. `rows`: those of a COPY, or the key of the cursor's row for WHERE CURRENT OF."""
        match write:
            case InsertPlan():
                return self.insert(write, rows)
            case ChangePlan() if rows is not None:
                with self.incoming(rows, CURRENT):
                    return self.change(write)
            case ChangePlan():
                return self.change(write)
            case MergePlan():
                return self.merge(write)
            case TruncatePlan():
                return self.truncate(write)
            case WithPlan():
                return self.with_parts(write)

    # ---- INSERT --------------------------------------------------------------------------------------------------------------

    def insert(self, write: InsertPlan, copied: pa.Table | None) -> Effect:
        """Evaluates an INSERT, or a COPY with the rows `copied`."""
        table, rules = write.table, write.own
        if copied is not None:
            rows = self._whole(write, copied)
        else:
            assert write.rows is not None
            written = None if write.rows.calls or write.rows.session_values else write.rows.literal(self.values)
            rows = written if written is not None else self.query(write.rows)
        rows = self.stored.of(rules, rows)
        inserted = self._inserted(write, rows)
        self.violations.check_views(table, write.view_checks, inserted.rows)
        proposed = {table.id: self.key_hashes(rules, rows)} if rules.keys else {}
        changes, read, postponed = self.changes(write.rules, table, inserted)
        returned = self.returned(write.returning, inserted.rows)
        return Effect(inserted.rows.num_rows, changes, merged(proposed, read), write.reads, returned, write.rules, postponed)

    def changes(self, rules: RulesByTable, table: Table, inserted: Inserted) -> tuple[Changes, Hashes, frozenset[tuple[int, str]]]:
        """Returns the net changes by table, the hashes of the keys that were read or written, and the checks for COMMIT."""
        own, old, new = rules[table.id], inserted.old, inserted.new
        if own.references or own.referring or self.earlier is not None:
            references = self.references(rules)
            if old.num_rows:
                references.update(table, old, new, np.ones(old.num_rows, np.int64))
            references.insert(table, inserted.fresh)
            self.check_references(references)
            return references.changes, joined(references.hashes), frozenset(references.postponed)
        changes = weighted(inserted.fresh, 1)
        if not old.num_rows:
            return {table.id: changes if table.key is not None else net(changes)}, {}, frozenset()
        changes = net(pa.concat_tables([changes, weighted(old, -1), weighted(new, 1)]))
        return {table.id: changes}, {table.id: self.key_hashes(own, pa.concat_tables([old, new]))}, frozenset()

    def key_hashes(self, rules: Rules, rows: pa.Table) -> np.ndarray:
        """Returns the hashes of all keys of rows."""
        return all_hashes(rules.keys, self.stored.keyed(rules, rows))

    def references(self, rules: RulesByTable) -> References:
        """Returns the foreign keys of a statement's changes."""
        return self.earlier or References(self.cursor, rules, self.violations, self.query, self.is_deferred)

    def check_references(self, references: References) -> None:
        """Checks the foreign keys after a statement; those of the parts of a WITH are checked together."""
        if references is not self.earlier:
            references.check()

    def state(self, table: Item) -> AbstractContextManager[str]:
        """Returns the rows of a table after the earlier parts of a WITH, as SQL within a `with` block."""
        return self.references({}).state(table)

    def check(self, write: InsertPlan, copied: pa.Table) -> None:
        """Raises 23502 or 23514 if a row violates NOT NULL or CHECK."""
        self.violations.allowed(write.own, self.stored.of(write.own, self._whole(write, copied)))

    def _whole(self, write: InsertPlan, copied: pa.Table) -> pa.Table:
        """Adds the columns that a COPY omits."""
        if write.rows is None or write.rows.written is not None:
            return copied
        if write.rows.source is not None:
            return self.numbered(write.rows, self.source_of(write.rows, copied))
        with self.incoming(copied):
            return self.query(write.rows)

    def _inserted(self, write: InsertPlan, rows: pa.Table) -> Inserted:
        """Checks the rows of an INSERT, and applies ON CONFLICT to those whose keys exist."""
        rules = write.own
        if not rules.keys or not rows.num_rows:
            self.violations.allowed(rules, rows)
            return Inserted.of(rows)
        if write.conflict == "update":
            return self._upserted(write, rows)
        possible = [key for key in rules.keys if write.conflict == "nothing" and write.arbiter in (None, key)]
        arbiters = [key for key in possible if not key.deferrable]
        skipped = self._skipped(rules, arbiters, rows)
        for key in possible if not skipped.all() else ():
            checked_immediate(key, rules.table, self.violations.shown.catalog)
        new_rows = rows.filter(pa.array(~skipped)) if skipped.any() else rows
        self.check_unique(rules, [key for key in rules.keys if key not in arbiters], rows, new_rows)
        return Inserted.of(new_rows)

    def check_unique(self, rules: Rules, checked: Sequence[Key], rows: pa.Table, new_rows: pa.Table) -> None:
        """Raises the error of the first row that violates NOT NULL, CHECK or, if it is not skipped, one of these keys."""
        first: tuple[int, int] | None = None
        checked = [key for key in checked if not self.is_deferred(rules.table.id, key)]
        keyed = self.stored.keyed(rules, new_rows) if checked else new_rows
        for number, key in enumerate(checked):
            again, old = repeated(key, keyed), self.existing(rules, key, keyed)
            if (place := min([*again[:1], *old[:1]], default=None)) is not None:
                first = min(first or (int(place), number), (int(place), number))
        self.violations.allowed(rules, rows, before=None if first is None or new_rows is not rows else first[0])
        if first is not None:
            place, number = first
            raise of_row(place, self.violations.duplicate(rules, checked[number], keyed.slice(place, 1)))

    def existing(self, rules: Rules, key: Key, keyed: pa.Table) -> np.ndarray:
        """Returns the positions of rows whose key exists in the table."""
        with self.state(rules.table) as stored:
            return existing(self.cursor, rules.fields, key, keyed, rules.with_key_values(stored, key))

    def _skipped(self, rules: Rules, arbiters: Sequence[Key], rows: pa.Table) -> np.ndarray:
        """Returns for each row whether DO NOTHING skips it: one of these keys exists, or is that of an earlier row that is inserted."""
        skipped = np.zeros(rows.num_rows, bool)
        rows = self.stored.keyed(rules, rows) if arbiters else rows
        for key in arbiters:
            skipped[self.existing(rules, key, rows)] = True
        if len(arbiters) == 1:
            skipped[repeated(arbiters[0], rows)] = True
        elif any(len(repeated(key, rows)) for key in arbiters):
            earlier: list[set[int]] = [set() for _ in arbiters]
            every = [row_hashes(key, rows) for key in arbiters]
            for place in np.flatnonzero(~skipped).tolist():
                values = [hashes[place] for hashes in every]
                skipped[place] = any(value in keys for value, keys in zip(values, earlier, strict=True))
                if not skipped[place]:
                    for value, keys in zip(values, earlier, strict=True):
                        keys |= set() if value is None else {value}
        return skipped

    def _upserted(self, write: InsertPlan, rows: pa.Table) -> Inserted:
        """Checks the rows of INSERT … ON CONFLICT DO UPDATE."""
        table, rules, arbiter = write.table, write.own, write.arbiter
        assert arbiter is not None and write.existing is not None
        width = len(table.columns)
        with self.incoming(rows):
            met = self.unchanged(table, self.query(write.existing).sort_by("c0"), 1)
        places = met.column(0).to_numpy()
        self.violations.allowed(rules, rows)
        is_fresh = np.ones(rows.num_rows, bool)
        is_fresh[places] = False
        fresh = rows.filter(pa.array(is_fresh))
        keyed = self.stored.keyed(rules, rows)
        if len(repeated(arbiter, keyed)) or (self.earlier and len(self.existing(rules, arbiter, keyed.filter(pa.array(is_fresh))))):
            raise CardinalityViolation(
                "ON CONFLICT DO UPDATE command cannot affect row a second time",
                hint="Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
            )
        passing = met.filter(met.column(width + 1))
        old = fitted(passing.select(range(1, width + 1)), table.columns)
        new = self.stored.of(rules, passing.select(range(width + 2, 2 * width + 2)))
        self.changed[table.id].append(old)
        self.violations.allowed(rules, new)
        self.check_unique(rules, [key for key in rules.keys if key != arbiter], fresh, fresh)
        self.check_moved(rules, old, new, fresh)
        order = np.argsort(np.concatenate([np.flatnonzero(is_fresh), passing.column(0).to_numpy()]), kind="stable")
        return Inserted(fresh, old, new, pa.concat_tables([fresh, new]).take(pa.array(order)))

    def returned(self, returning: Query | None, rows: pa.Table) -> pa.Table | None:
        """Returns the rows of RETURNING for the written rows."""
        if returning is None:
            return None
        with self.incoming(rows):
            return named(self.query(returning), returning.columns)

    # ---- UPDATE, DELETE, TRUNCATE --------------------------------------------------------------------------------------------

    def change(self, write: ChangePlan) -> Effect:
        """Evaluates an UPDATE or DELETE."""
        table, rules = write.table, write.own
        width = len(table.columns)
        matches = self.unchanged(table, self.once(table, self.query(write.rows)))
        weights = matches.column(width).to_numpy()
        old = fitted(matches.select(range(width)), table.columns)
        self.changed[table.id].append(old)
        new = None
        if write.updates:
            new = self.stored.of(rules, matches.select(range(width + 1, 2 * width + 1)))
            self.violations.allowed(rules, new)
            self.check_moved(rules, old, new, new.slice(0, 0))
            self.violations.check_views(table, write.view_checks, new)
        reads = set(write.reads)
        if table.key is not None and write.pinned and write.scans.count(table.id) == 1:
            reads.discard(table.id)
        returned = None
        if write.returning is not None:
            others = matches.select(range(width + 1 + width * write.updates, matches.num_columns))
            shown = [*(old if new is None else new).columns, *others.columns]
            rows = pa.Table.from_arrays(shown, names=[f"c{i}" for i in range(len(shown))])
            returned = self.returned(write.returning, rows.take(pa.array(np.repeat(np.arange(rows.num_rows), weights))))
        references = self.references(write.rules)
        if new is None:
            references.delete(table, old, weights)
        else:
            references.update(table, old, new, weights)
        self.check_references(references)
        return self.effect(int(weights.sum()), references, frozenset(reads), write.rules, returned)

    def effect(
        self, count: int, references: References, reads: frozenset[int], rules: RulesByTable, returned: pa.Table | None = None
    ) -> Effect:
        """Returns the effect of changes whose foreign keys have been checked."""
        postponed = frozenset(references.postponed)
        return Effect(count, references.changes, joined(references.hashes), reads, returned, rules, postponed)

    def once(self, table: Item, matches: pa.Table) -> pa.Table:
        """Returns each table row once if FROM joins it several times: the first match, in PostgreSQL an unspecified one."""
        columns = list(table.key) if table.key is not None else list(range(len(table.columns)))
        rows = matches.num_rows
        if rows < 2:
            return matches
        names = ", ".join(f"c{i}" for i in columns)
        with registered(self.cursor, "found", with_places(matches.select(columns))) as found:
            firsts = self.cursor.execute(f"SELECT min(place) AS p FROM {found} GROUP BY {names} ORDER BY p").fetchnumpy()["p"]
        return matches if len(firsts) == rows else matches.take(pa.array(firsts))

    def check_moved(self, rules: Rules, old: pa.Table, new: pa.Table, fresh: pa.Table) -> None:
        """Raises 23505 if a changed key equals that of another row."""
        old, new, fresh = (self.stored.keyed(rules, rows) for rows in (old, new, fresh))
        for key in rules.keys:
            if self.is_deferred(rules.table.id, key) or all(old.column(k).equals(new.column(k)) for k in key.compared):
                continue
            all_new = pa.concat_tables([new, fresh])
            again = repeated(key, all_new)
            if len(again):
                raise self.violations.duplicate(rules, key, all_new.slice(int(again[0]), 1))
            with self.state(rules.table) as rows:
                place = moved(self.cursor, rules.fields, key, old, new, rules.with_key_values(rows, key))
            if place is not None:
                raise self.violations.duplicate(rules, key, new.slice(place, 1))

    def merge(self, write: MergePlan) -> Effect:
        """Returns the effect of a MERGE. Raises 21000 if it would change a row twice, and the errors of constraints."""
        table, rules, width = write.table, write.own, len(write.table.columns)
        rows = self.query(write.rows)
        actions = np.array(write.actions)[rows.column(width + 1).to_numpy()]

        def part(*chosen: str) -> pa.Table:
            return rows.filter(pa.array(np.isin(actions, chosen)))

        def old(part: pa.Table) -> pa.Table:
            return fitted(part.select(range(width)), table.columns)

        def new(part: pa.Table) -> pa.Table:
            return self.stored.of(rules, part.select(range(width + 2, 2 * width + 2)))

        changed, updated, deleted, inserted = part("update", "delete"), part("update"), part("delete"), part("insert")
        if self.unchanged(table, self.once(table, changed)).num_rows < changed.num_rows:
            raise CardinalityViolation(
                "MERGE command cannot affect row a second time",
                hint="Ensure that not more than one source row matches any one target row.",
            )
        before, after, fresh = old(updated), new(updated), new(inserted)
        self.violations.allowed(rules, after)
        self.check_unique(rules, rules.keys, fresh, fresh)
        self.check_moved(rules, before, after, fresh)
        references = self.references(write.rules)
        references.update(table, before, after, _copies(updated, width))
        references.delete(table, old(deleted), _copies(deleted, width))
        references.insert(table, fresh)
        self.check_references(references)
        count = int(_copies(changed, width).sum()) + inserted.num_rows
        return self.effect(count, references, write.reads, write.rules)

    # ---- WITH ----------------------------------------------------------------------------------------------------------------

    def with_parts(self, write: WithPlan) -> Effect:
        """Evaluates a WITH whose parts write.

        All queries see the tables as they were before the statement. Keys are checked with the changes of earlier parts, foreign keys
        after all parts. As in PostgreSQL, a row that an earlier part has changed is not changed again.
        """
        self.earlier = references = self.references(write.rules)
        effects, body = list[Effect](), Effect()
        with ExitStack() as stack:
            for relation, part in (*write.parts[: write.first], (INCOMING, write.body), *write.parts[write.first :]):
                if isinstance(part, Query):
                    rows = named(self.query(part), part.columns)
                    effect = Effect(rows.num_rows, returned=rows)
                else:
                    self.violations = self.violations.of(part.demands)
                    effect = self.run(part)
                effects.append(effect)
                if relation == INCOMING:
                    body = effect
                elif effect.returned is not None:
                    stack.enter_context(self.incoming(effect.returned, relation))
        references.check()
        keys = merged(*(effect.keys for effect in effects), joined(references.hashes))
        reads = write.reads.union(*(effect.reads for effect in effects))
        return Effect(body.count, references.changes, keys, reads, body.returned, write.rules, frozenset(references.postponed))

    def unchanged(self, table: Table, matches: pa.Table, first: int = 0) -> pa.Table:
        """Returns matched rows without those that earlier parts of a WITH have changed. `first`: the position of the table's columns."""
        if self.earlier is None:
            return matches
        changes = self.earlier.changes.get(table.id)
        old_rows = list(self.changed[table.id])
        if changes is not None:
            old_rows.append(changes.filter(pc.less(changes[WEIGHT], 0)).drop_columns([WEIGHT]))
        if not any(rows.num_rows for rows in old_rows):
            return matches
        columns = range(len(table.columns)) if table.key is None else table.key
        old = pa.concat_tables([rows.select(list(columns)) for rows in old_rows])
        return matches.take(pa.array(others(self.cursor, table.columns, columns, matches.select([first + i for i in columns]), old)))

    def truncate(self, write: TruncatePlan) -> Effect:
        """Evaluates a TRUNCATE: removes all rows of the tables."""
        changes, keys = {}, {}
        for table in write.tables:
            columns = ", ".join(f"c{i}" for i in range(len(table.columns)))
            weight = "-1" if table.key is not None else f"-CAST(sum({WEIGHT}) AS BIGINT)"
            grouped = "" if table.key is not None else f" GROUP BY {columns}"
            rows = self.cursor.execute(f"SELECT {columns}, {weight} FROM r{table.id}{grouped}").to_arrow_table()
            changes[table.id] = conform(rows, arrow_schema(table.columns, weight=True))
            keys[table.id] = self.key_hashes(write.rules[table.id], changes[table.id])
        return Effect(0, changes, keys, frozenset(t.id for t in write.tables), None, write.rules)


def named(rows: pa.Table, columns: Sequence[Field]) -> pa.Table:
    return conform(rows, arrow_schema(tuple(columns)))


def _copies(rows: pa.Table, width: int) -> np.ndarray:
    copies: np.ndarray = rows.column(width).to_numpy()
    return copies.astype(np.int64)
