"""The columns and pseudo columns that the expressions of a query of ksqlDB see, with their texts in PostgreSQL's dialect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tailgate.lake.catalog.names import quoted
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.functions.volatile import clock
from tailgate.sql.ksqldb.names import catalog_name, ksqldb_name
from tailgate.sql.ksqldb.pseudo_columns import ARRIVAL, PSEUDO_COLUMNS, record
from tailgate.sql.ksqldb.typed.values import Typed

ROWKEY = "rowkey"  # the key of a full join, and an unnamed key
WINDOWSTART = "CAST(extract(epoch FROM window_start) * 1000 AS bigint)"  # window_start: a column of tumble, hop and session


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns of the source of a query, in order, without the pseudo columns.

    `names`: the names that may qualify a column. `has_position`: whether the pseudo columns exist. `of_table`: those that the rows of a
    table have. `window_end`: the text of WINDOWEND, if there are windows: then WINDOWSTART and WINDOWEND exist. `joined`: the other sources
    of a join; then the texts of columns are qualified with the first of the names. `key`: the value of the synthetic key of a join, if
    it exists, which has the name `key_name`.
    `unnamed_key`: the column, which may be hidden, that ROWKEY stands for in a source with an unnamed key.
    `of_join`: the texts of the pseudo columns of the rows of a join of streams. `is_flat`: the texts of the columns of a join
    are single names, SOURCE.COLUMN. `is_declared`: whether it is a declared stream. `is_pulled`: whether the rows
    are read once, by a pull query. `hidden`: the names of the columns with the position of a row of a stream. `clock`: the text of the
    time when the record of a row was processed, if the rows have it in a column.
    """

    columns: Mapping[str, TypeName]
    names: tuple[str, ...]
    has_position: bool = True
    of_table: tuple[str, ...] = ()
    window_end: str | None = None
    joined: tuple[Scope, ...] = ()
    key: Typed | None = None
    key_name: str = ROWKEY
    unnamed_key: tuple[str, TypeName] | None = None
    of_join: Mapping[str, str] = field(default_factory=dict)
    is_flat: bool = False
    is_declared: bool = False
    is_pulled: bool = False
    hidden: tuple[str, ...] = tuple(PSEUDO_COLUMNS)
    clock: str = ""

    @property
    def record(self) -> tuple[str, ...]:
        """Returns the texts of the partition and the offset of a row of a stream."""
        return record(self.position)

    @property
    def place(self) -> tuple[str, ...]:
        """Returns the texts that identify a row: partition and offset of the record from which it results, otherwise all its columns."""
        timed = next((source for source in self.sources if source.has_position), None)
        if timed is not None and timed.is_declared and not self.of_join:
            return self.record
        columns = [self.text(column, source) for source in self.sources for column in source.columns]
        position = [text for name, text in self.position.items() if name != ARRIVAL]  # which changes if the row is read again
        return tuple(f"coalesce(CAST({text} AS text), '')" for text in (*position, *self._times, *columns))

    @property
    def clock_of_place(self) -> str:
        """Returns the text of the time in milliseconds when a row of a table is processed."""
        return clock(("0", f"length({self.place[0]})"))

    @property
    def position(self) -> Mapping[str, str]:
        """Returns the texts of the hidden columns of a row by their names: those of the row of a stream that it results from, if any."""
        timed = next((source for source in self.sources if source.has_position), None)
        return self.of_join or ({} if timed is None else {column: self.text(column, timed) for column in timed.hidden})

    @property
    def rowtime(self) -> str:
        """Returns the text of ROWTIME of a row, if it has one. Without a stream it is the latest of the tables' rows."""
        if self.position:
            return self.position["rowtime"]
        times = self._times
        return f"greatest({', '.join(times)})" if len(times) > 1 else "".join(times)

    @property
    def row_order(self) -> tuple[str, ...]:
        """Returns texts that sort the rows of a table in the order of the records from which they result, if they have ROWTIME."""
        place = [self.text(name, self) for name in ("rowpartition", "rowoffset") if name in self.of_table and not self.joined]
        return (*filter(None, [self.rowtime]), *place)

    @property
    def _times(self) -> list[str]:
        """Returns the texts of ROWTIME of the tables' rows."""
        return [self.text("rowtime", source) for source in self.sources if "rowtime" in source.of_table]

    @property
    def sources(self) -> tuple[Scope, ...]:
        """Returns the scopes of all sources."""
        return (self, *self.joined)

    def text(self, column: str, source: Scope) -> str:
        """Returns the text of a column of a source."""
        if self.is_flat:
            return quoted(f"{source.names[0]}.{column}")
        return f"{quoted(source.names[0])}.{quoted(column)}" if self.joined else quoted(column)

    def pseudo_column(self, reference: e.ColumnReference) -> str:
        """Returns the text of a pseudo column that one source has; empty if there is none."""
        if reference.column not in PSEUDO_COLUMNS:
            return ""
        if reference.source is None and reference.column == "rowtime":
            return self.rowtime
        if reference.source is None and self.position:
            return self.position[reference.column]
        sources = [source for source in self.sources if reference.source is None or reference.source in source.names]
        owners = [source for source in sources if source.has_pseudo_column(reference.column)]
        return self.text(reference.column, owners[0]) if len(owners) == 1 else ""

    def has_pseudo_column(self, column: str) -> bool:
        """Returns whether the source itself has a pseudo column."""
        return column in PSEUDO_COLUMNS and (self.has_position or column in self.of_table)

    def name(self, column: str, source: Scope) -> str:
        """Returns the name that SELECT * of a join gives to a column: SOURCE_COLUMN."""
        return catalog_name(f"{ksqldb_name(source.names[0])}_{ksqldb_name(column)}")


@dataclass(frozen=True, slots=True)
class MessageScope(Scope):
    """The scope of the values of a message that is written: without columns and a position. Its place is that of one record."""

    @property
    def record(self) -> tuple[str, ...]:
        return "0", "0"

    @property
    def place(self) -> tuple[str, ...]:
        return self.record

    @property
    def position(self) -> Mapping[str, str]:
        return {}
