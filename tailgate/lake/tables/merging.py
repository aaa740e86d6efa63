"""Applying the net changes of a relation to its Delta table, in one commit (W5).

A small table is one file that is rewritten as a whole: 5 ms of CPU for 5,000 rows, where a merge takes
13 (measured). Its rows are kept in memory for that. A larger table is merged by its key, or by all
columns with the count of each row.

Changes that would give a row a negative count, or a key more than one row, raise `Inconsistent` and
leave the table unchanged.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.table import TableMerger

from tailgate.lake.store import Store
from tailgate.lake.tables import delta
from tailgate.lake.tables.delta import CONFIGURATION, NO_HOOKS, committing
from tailgate.lake.tables.delta_forms import to_delta
from tailgate.lake.tables.stored_relations import COUNT, Stored, table_name
from tailgate.lake.tables.weights import keys_only_in, negative, net, positive
from tailgate.lake.types import WEIGHT

GONE = "__gone"
FILE_BYTES = 16 << 20  # a merge rewrites the files that it changes, so small files make small merges cheap
BATCH_ROWS = 65_536
FEW_ROWS = 20_000  # up to these limits a table is rewritten as a whole, and the follower keeps it in memory:
FEW_BYTES = 4 << 20  # 80 MB for twenty tables of the maximum size

DIVISION = "Divide by zero"  # delta-rs' message for a division by zero


class Inconsistent(Exception):
    """The changes of a relation are impossible: an operator has a defect, or a state was shared by mistake."""


def create(store: Store, stored: Stored, commit: CommitProperties) -> DeltaTable:
    """Creates the empty table of a relation."""
    configuration = {**CONFIGURATION, "delta.targetFileSize": str(FILE_BYTES)}
    return delta.create(store, table_name(stored.id), stored.table, stored.name, configuration=configuration, commit_properties=commit)


def widen(table: DeltaTable, stored: Stored, commit: CommitProperties) -> None:
    """Adds columns to a table that its relation got after the table was created."""
    existing = {field.name for field in table.schema().fields}
    new = [field for field in Schema.from_arrow(stored.table).fields if field.name not in existing]
    if new:
        committing(table, lambda: table.alter.add_columns(new, commit_properties=commit, post_commithook_properties=NO_HOOKS))


def few(table: DeltaTable) -> bool:
    """Returns whether a table is small enough to be rewritten as a whole."""
    files = delta.data_files(table).values()
    return sum(file.rows for file in files) <= FEW_ROWS and sum(file.bytes for file in files) <= FEW_BYTES


def apply(table: DeltaTable, stored: Stored, changes: pa.Table, commit: CommitProperties, rows: pa.Table | None) -> pa.Table | None:
    """Applies the net changes since the table's last transaction, in one commit.

    `rows` are the rows of a small table, with weights; None for a larger one. Returns the new rows if the
    table is still small, otherwise None.
    """
    if rows is None:
        if stored.key is None:
            _merge_counts(table, stored, to_delta(changes), commit)
        elif stored.key:
            _merge_by_key(table, stored, to_delta(changes), commit)
        else:
            _overwrite(table, stored, positive(changes), commit)
        return None
    rows = net(pa.concat_tables([rows, changes])) if rows.num_rows else changes
    _overwrite(table, stored, rows, commit)
    return rows if rows.num_rows <= FEW_ROWS and rows.nbytes <= FEW_BYTES else None


def clear(table: DeltaTable, commit: CommitProperties) -> None:
    """Deletes all rows."""
    committing(table, lambda: table.delete(commit_properties=commit, post_commithook_properties=NO_HOOKS))


def _overwrite(table: DeltaTable, stored: Stored, weighted: pa.Table, commit: CommitProperties) -> None:
    """Writes all rows of a relation. Large tables are sorted by the key, so that later merges change few files."""
    if stored.key is not None:
        check_added(weighted)
        rows = weighted.drop_columns([WEIGHT])
    else:
        _check_counts(weighted)
        rows = weighted.rename_columns([*weighted.column_names[:-1], COUNT])
    if rows.num_rows > FEW_ROWS:
        order = [name for name in stored.key_names if not pa.types.is_nested(rows.schema.field(name).type)]
        rows = rows.sort_by([(name, "ascending") for name in order]) if stored.key and order else rows
    batches = to_delta(rows).cast(stored.table).to_batches(max_chunksize=BATCH_ROWS)
    committing(
        table,
        lambda: write_deltalake(
            table,
            pa.RecordBatchReader.from_batches(stored.table, batches),
            mode="overwrite",
            target_file_size=FILE_BYTES,
            writer_properties=delta.writer_properties(stored.table),
            commit_properties=commit,
            post_commithook_properties=NO_HOOKS,
        ),
    )


def _merge_by_key(table: DeltaTable, stored: Stored, changes: pa.Table, commit: CommitProperties) -> None:
    """Upserts the keys that have a new row, and deletes the keys that only lost a row."""
    came, went = positive(changes), negative(changes)
    check_added(came)
    deleted = keys_only_in(went, came, stored.key_names)
    source = pa.concat_tables([_flagged(came, False), _flagged(deleted, True)])
    merge = (
        _merger(table, stored, source, commit)
        .when_matched_delete(f"s.{quoted(GONE)}")
        .when_matched_update_all(except_cols=[GONE])
        .when_not_matched_insert_all(predicate=f"NOT s.{quoted(GONE)}", except_cols=[GONE])
    )
    committing(table, merge.execute)


def _merge_counts(table: DeltaTable, stored: Stored, changes: pa.Table, commit: CommitProperties) -> None:
    sum_ = f"t.{quoted(COUNT)} + s.{quoted(WEIGHT)}"
    came = f"s.{quoted(WEIGHT)}"
    inserted = {quoted(name): f"s.{quoted(name)}" for name in stored.key_names} | {quoted(COUNT): _positive(came)}
    merge = (
        _merger(table, stored, changes, commit)
        .when_matched_delete(f"{sum_} = 0")
        .when_matched_update({quoted(COUNT): _positive(sum_)})
        .when_not_matched_insert(inserted)
    )
    try:
        committing(table, merge.execute)
    except DeltaError as error:
        if DIVISION not in str(error):
            raise
        raise Inconsistent("a row would have a negative count") from error


def _positive(count: str) -> str:
    """Returns an expression for delta-rs: the count, or the error DIVISION if it is negative."""
    return f"({count}) / (CASE WHEN {count} < 0 THEN 0 ELSE 1 END)"


def _merger(table: DeltaTable, stored: Stored, source: pa.Table, commit: CommitProperties) -> TableMerger:
    # The parentheses are needed: delta-rs reads `a IS NOT DISTINCT FROM b AND c` as `a IS NOT DISTINCT FROM (b AND c)`. It runs
    # as a hash join, as fast as `=` (measured), and supports NULL, NaN, lists and structs.
    same = " AND ".join(f"(t.{quoted(name)} IS NOT DISTINCT FROM s.{quoted(name)})" for name in stored.key_names)
    return table.merge(
        source,
        same,
        source_alias="s",
        target_alias="t",
        writer_properties=delta.writer_properties(stored.table),
        commit_properties=commit,
        post_commithook_properties=NO_HOOKS,
    )


def _flagged(changes: pa.Table, flag: bool) -> pa.Table:
    rows = changes.drop_columns([WEIGHT])
    return rows.append_column(GONE, pa.repeat(flag, rows.num_rows))


def check_added(came: pa.Table) -> None:
    """Raises `Inconsistent` if a row of a relation with a key has another weight than 1."""
    weights = sorted(came[WEIGHT].unique().to_pylist())
    if weights not in ([], [1]):
        raise Inconsistent(f"the relation has a key, and rows with the weights {weights}")


def _check_counts(weighted: pa.Table) -> None:
    if weighted.num_rows and pc.min(weighted[WEIGHT]).as_py() < 0:
        raise Inconsistent("a row would have a negative count")


def quoted(name: str) -> str:
    """Returns a column's name for delta-rs' expressions."""
    return '"' + name.replace('"', '""') + '"'
