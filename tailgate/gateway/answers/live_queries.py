"""Queries whose result the changes of a tick update: each row of it depends on one row of one relation.

    SELECT expressions FROM relation WHERE condition ORDER BY keys LIMIT n
      = the first n, by their sort key, of: SELECT expressions, sort key FROM relation WHERE condition

Filters and projections are evaluated on changed rows by DuckDB, with the SQL of a followed query: Δ(σ(π(R))) = σ(π(ΔR)). The sort key
is DuckDB's own, bytes in the order of ORDER BY. As in the statement, all columns break ties.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from tailgate.gateway.mirrors.incoming import Incomings
from tailgate.gateway.mirrors.overlay import BASE
from tailgate.gateway.serving.fetching import fetched
from tailgate.gateway.serving.prepared import ChangeQuery, Prepared, changes_of
from tailgate.lake.errors import OutOfMemory
from tailgate.lake.types import BYTEA, WEIGHT, Field, arrow_schema
from tailgate.sql import plan
from tailgate.sql.functions.entry import Function
from tailgate.sql.plan.rewriting import columns_of
from tailgate.sql.plan.sort_keys import sort_key
from tailgate.sql.render.duckdb import arguments
from tailgate.sql.time_zones import in_zone

SQL_MAX = 20_000  # characters of a statement whose plan is looked at; to render it again takes up to a millisecond
ROWS_MAX = 5_000  # that a poll keeps: to encode more takes milliseconds
SORTED_MAX = 200_000  # rows of a relation of which the first ones are kept: their sort keys take 20 ms on a thread
KEPT_MIN = 100  # ordered rows that are kept in addition to those of the result
SORT_KEY = Field("key", BYTEA)


@dataclass(frozen=True, slots=True)
class LiveQuery:
    """A query over the rows of `relation`, which has `width` columns, with the values of its parameters.

    `changes`: the query over rows with weights. `computed`: its columns, those of the result and, if the result is ordered, the sort key.
    `selected`: the positions of these columns in the relation, if the query only selects columns: then `over` is not needed. `part`: which
    of the ordered rows are the result, None if it has no order. `mirror`: what FROM reads, the mirror's rows with weights.
    """

    relation: int
    width: int
    selected: tuple[int, ...] | None
    changes: ChangeQuery
    computed: tuple[Field, ...]
    mirror: str
    values: Sequence[object]
    part: slice | None = None

    @property
    def stop(self) -> float:
        """Returns the number of rows up to LIMIT, or infinity."""
        return math.inf if self.part is None or self.part.stop is None else self.part.stop

    @property
    def relation_rows_max(self) -> float:
        """Returns the number of rows of a relation up to which `first` costs little more than the statement."""
        if self.selected is not None:
            return ROWS_MAX
        return math.inf if self.part is None else SORTED_MAX

    @property
    def kept(self) -> int:
        """Returns the number of rows that are kept: more than those up to LIMIT, because some of them leave."""
        return int(min(ROWS_MAX, KEPT_MIN + 2 * self.stop))

    def over(self, incomings: Incomings, rows: pa.Table) -> pa.Table:
        """Returns the columns `computed`, and the weight, of rows of the relation with weights."""
        width = len(self.changes.read)
        rows = rows.select([*range(width), self.width]).rename_columns([*_names(width), WEIGHT])
        incoming = incomings.of(self.relation)
        return fetched(incoming.run(self._sql(incoming.name), rows, self._arguments()), arrow_schema(self.computed, weight=True))

    def first(self, connection: duckdb.DuckDBPyConnection) -> pa.Table | None:
        """Returns the same of the first rows of the mirror, one more than are kept. Returns None after an error.

        The statement may not have this error, because it computes and returns fewer rows.
        """
        order = "" if self.part is None else f" ORDER BY c{len(self.computed) - 1}"
        try:
            sql = f"{self._sql(self.mirror)}{order} LIMIT {self.kept + 1}"
            return fetched(connection.execute(sql, self._arguments()), arrow_schema(self.computed, weight=True))
        except (duckdb.InterruptException, duckdb.CatalogException):
            raise
        except (duckdb.Error, OutOfMemory):
            return None

    def _arguments(self) -> dict[str, object]:
        return arguments(self.values, self.changes.used, self.changes.constants)

    def _sql(self, source: str) -> str:
        """Returns SQL for the columns `computed`, and the weight. `source`: what FROM reads."""
        width = len(self.changes.read)
        rows = f"SELECT {', '.join([*_names(width), WEIGHT])} AS c{width} FROM {source}"
        columns = ", ".join([*_names(len(self.computed)), WEIGHT])
        return f"WITH r{self.relation} AS ({rows}) SELECT * FROM ({self.changes.sql}) AS q({columns})"


def live_query(prepared: Prepared, values: Sequence[object]) -> LiveQuery | None:
    """Returns the live query that a statement is, or None if its result depends on its relations in another way."""
    if prepared.volatile or prepared.calls or len(prepared.items) != 1 or len(prepared.sql) > SQL_MAX:
        return None
    (item,), (shown, relation) = prepared.items, _below_selections(prepared.query.plan)
    weights = "" if item.key is None else f", CAST(1 AS BIGINT) AS {WEIGHT}"
    mirror = f"(SELECT *{weights} FROM {BASE}r{item.id})"
    if prepared.changes is not None:
        selected = shown if isinstance(relation, plan.Scan) else None
        return LiveQuery(item.id, len(item.columns), selected, prepared.changes, prepared.columns, mirror, values)
    part: slice | None = slice(0, None)
    if isinstance(relation, plan.Limit):
        part, relation = _part(relation, values), relation.input
    if part is None or not isinstance(relation, plan.Sort):
        return None
    keyed = _with_sort_key(relation, shown)
    with in_zone(prepared.time_zone):
        changes = changes_of(keyed)
    if changes is None:
        return None
    return LiveQuery(item.id, len(item.columns), None, changes, keyed.columns, mirror, values, part)


def _below_selections(relation: plan.Relation) -> tuple[tuple[int, ...], plan.Relation]:
    """Returns the relation below the projections that only select columns, and the positions of the columns in it."""
    positions: Sequence[int] = range(len(relation.columns))
    while isinstance(relation, plan.Project):
        columns = [expression.index for expression in relation.expressions if isinstance(expression, plan.Column)]
        if len(columns) < len(relation.expressions):
            break
        positions, relation = [columns[i] for i in positions], relation.input
    return tuple(positions), relation


def _part(limit: plan.Limit, values: Sequence[object]) -> slice | None:
    """Returns which rows LIMIT and OFFSET leave, or None for other numbers than literals and values of parameters."""
    numbers = [0 if count is None else _number(count, values) for count in (limit.offset, limit.count)]
    if any(number is None or number < 0 for number in numbers):
        return None
    first, count = (number or 0 for number in numbers)
    return slice(first, None if limit.count is None else first + count)


def _number(count: plan.Scalar, values: Sequence[object]) -> int | None:
    if isinstance(count, plan.Call) and count.function.name == "cast":  # of a parameter that is a smaller integer
        (count,) = count.arguments
    value = values[count.number - 1] if isinstance(count, plan.Parameter) else count.value if isinstance(count, plan.Literal) else None
    return value if isinstance(value, int) else None


def _with_sort_key(sort: plan.Sort, shown: Sequence[int]) -> plan.Project:
    """Returns the columns `shown` of the sorted rows, and their sort key."""
    terms, directions = list[plan.Scalar](), list[str]()
    for key in sort.keys:
        if columns_of(key.expression):
            terms.append(sort_key(key.expression))
            directions.append(f"{'DESC' if key.descending else 'ASC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}")
    columns = [plan.Column(i, field.type) for i, field in enumerate(sort.columns)]
    terms += columns
    directions += ["ASC NULLS LAST"] * len(columns)
    parts = ", ".join(f"{{{n}}}, '{direction}'" for n, direction in enumerate(directions))
    # with the empty text the sort key of a few numbers is a text of bytes, too: without it, DuckDB returns an integer
    function = Function("order", ("any",) * len(terms), "bytea", duckdb=f"create_sort_key({parts}, '', 'ASC NULLS LAST')", strict=False)
    expressions: list[plan.Scalar] = [*(columns[i] for i in shown), plan.Call(function, tuple(terms), BYTEA)]
    return plan.Project(sort.input, tuple(expressions), (*(sort.columns[i] for i in shown), SORT_KEY))


def _names(count: int) -> list[str]:
    return [f"c{i}" for i in range(count)]
