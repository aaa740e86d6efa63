"""Renders a bound plan as one SELECT of DuckDB.

Tables are named r<relation id>, with columns c0, c1, … A table without a key has a last column
`__weight`, the number of copies of each row. The connection needs the functions and settings of
`sql.render.duckdb_functions.install`.

Every relation becomes a sub-select with columns c0, c1, …, so the SQL contains no names of users.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from typing_extensions import assert_never

from tailgate.lake.catalog.schemas import is_system
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import WEIGHT, Field
from tailgate.sql.compute.series import SERIES_MAX
from tailgate.sql.plan import (
    AggregateCall,
    ArrivalJoin,
    Closing,
    Column,
    Distinct,
    Filter,
    Generate,
    Join,
    Limit,
    Literal,
    Project,
    Recursive,
    Reduce,
    Relation,
    Scalar,
    Scan,
    SetOperation,
    Sort,
    SortKey,
    TopK,
    UnionAll,
    Value,
    Values,
    Window,
    WithinJoin,
    WorkingTable,
)  # fmt: skip
from tailgate.sql.plan.properties import is_volatile
from tailgate.sql.plan.sort_keys import has_equal_forms, sort_key
from tailgate.sql.plan.traversal import inputs
from tailgate.sql.render.dialects import DUCKDB
from tailgate.sql.render.duckdb_aggregates import aggregate, order_by, sort_terms
from tailgate.sql.render.duckdb_windows import window
from tailgate.sql.render.general_columns import with_general_columns
from tailgate.sql.render.guards import guarded
from tailgate.sql.render.scalars import CONSTANTS, render_scalar
from tailgate.sql.render.shared_arguments import checked_length
from tailgate.sql.render.templates import fill_template
from tailgate.sql.render.volatile_calls import computed_once
from tailgate.sql.time_zones import zoned

NOW = "CAST(now() AS TIMESTAMPTZ)"  # the start of the transaction
KEYWORDS = {
    "inner": "INNER JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "SEMI JOIN",
    "anti": "ANTI JOIN",
}


def render(plan: Relation, *, now: str = NOW, constants: list[Value] | None = None) -> str:
    """Returns the DuckDB SQL of a plan, with output columns c0, c1, … Raises 54001 if it is too long.

    `now`: SQL for the time of the statement. `constants`: long literals are appended to it and become
    parameters (see `arguments`); without it, they are written into the SQL.
    """
    plan = with_general_columns(computed_once(zoned(plan)))
    renderer = _Renderer(now, shared(plan), constants)
    text = renderer.relation(plan)
    if not renderer.written:
        return text
    parts = ", ".join(f"{name} AS MATERIALIZED ({part})" for name, part in renderer.written)
    return checked_length(f"WITH {parts} SELECT * FROM ({text})" if text.startswith("WITH") else f"WITH {parts} {text}")


def shared(plan: Relation) -> frozenset[int]:
    """Returns the ids (`id()`) of relations to compute once.

    These are used several times, do more than filter and project a table or call volatile functions,
    and do not read the working table of a recursion.
    """
    count: Counter[int] = Counter()
    nodes: dict[int, Relation] = {}
    kinds: dict[int, tuple[bool, bool]] = {}  # (does more than filter and project a table, reads a working table)

    def visit(node: Relation) -> tuple[bool, bool]:
        count[id(node)] += 1
        if count[id(node)] == 1:
            nodes[id(node)] = node
            below = [visit(i) for i in inputs(node)]
            simple = isinstance(node, Scan | Values | Filter | Project)
            kinds[id(node)] = not simple or any(b for b, _ in below), isinstance(node, WorkingTable) or any(w for _, w in below)
        return kinds[id(node)]

    visit(plan)
    often = ((i, *kinds[i]) for i, n in count.items() if n > 1)
    return frozenset(i for i, does_more, reads_round in often if not reads_round and (does_more or is_volatile(nodes[i])))


def arguments(values: Sequence[object], used: Iterable[int], constants: Sequence[Value]) -> dict[str, object]:
    """Returns the parameters for DuckDB, by name.

    They are the values of the parameters in `used`, because DuckDB rejects parameters that the SQL does
    not have, and the constants that `render` collected.
    """
    return {str(number): _argument(values[number - 1]) for number in used} | named_constants(constants)


def _argument(value: object) -> object:
    """Returns the value of a parameter. DuckDB reads NaN inside a list or a struct as NULL, so the numbers in it become texts."""
    return _with_texts(value) if isinstance(value, list | tuple | dict) and _has_nan(value) else value


def _has_nan(value: object) -> bool:
    match value:
        case list() | tuple():
            return any(map(_has_nan, value))
        case dict():
            return any(map(_has_nan, value.values()))
    return isinstance(value, float) and value != value


def _with_texts(value: object) -> object:
    match value:
        case list() | tuple():
            return [_with_texts(item) for item in value]
        case dict():
            return {name: _with_texts(item) for name, item in value.items()}
    return repr(value) if isinstance(value, float) else value


def named_constants(constants: Sequence[Value]) -> dict[str, object]:
    """Returns the constants by the names of their parameters."""
    return {str(number): value for number, value in enumerate(constants, CONSTANTS + 1)}


def columns(count: int, prefix: str = "") -> str:
    """Returns the list `c0, c1, …` of `count` columns, each with a prefix."""
    return ", ".join(f"{prefix}c{i}" for i in range(count))


class _Renderer:
    """The renderer of one plan. `written` has the common table expressions of shared relations."""

    def __init__(self, now: str, shared: frozenset[int], constants: list[Value] | None) -> None:
        self.now, self.shared, self.constants = now, shared, constants
        self.names: dict[int, str] = {}
        self.written: list[tuple[str, str]] = []

    def relation(self, plan: Relation) -> str:
        """Returns the SELECT of a relation. Raises 54001 if it is too long."""
        return checked_length(self._relation(plan))

    def _relation(self, plan: Relation) -> str:
        match plan:
            case Scan():
                return self._scan(plan)
            case Values(rows=rows):
                if not plan.columns:
                    return "SELECT 1 AS nothing"
                if not rows:
                    return (
                        "SELECT " + ", ".join(f"CAST(NULL AS {f.type.duckdb}) AS c{i}" for i, f in enumerate(plan.columns)) + " WHERE false"
                    )
                selects = ("SELECT " + ", ".join(f"{self.scalar(s)} AS c{i}" for i, s in enumerate(row)) for row in rows)
                return " UNION ALL ".join(selects)
            case Filter(input=input, condition=condition):
                return f"SELECT * FROM {self._from(input)} WHERE {self.condition(condition)}"
            case Project(input=input, expressions=expressions):
                shown = ", ".join(f"{self.scalar(e)} AS c{i}" for i, e in enumerate(expressions)) or "1 AS nothing"
                return f"SELECT {shown} FROM {self._from(input)}"
            case Join():
                return self._join(plan)
            case ArrivalJoin(position=at):
                raise FeatureNotSupported(
                    "FOR SYSTEM_TIME AS OF PROCTIME() is supported in materialized views only",
                    hint="Create a materialized view, or join with the table as it is.",
                    position=at,
                )
            case Closing(position=at):
                raise FeatureNotSupported("windows with a grace period are supported in materialized views only", position=at)
            case WithinJoin(position=at):
                raise FeatureNotSupported("JOIN … WITHIN is supported in materialized views only", position=at)
            case Reduce(input=input, keys=keys, aggregates=aggregates):
                return self._aggregate(input, keys, aggregates)
            case Distinct(input=input):
                return f"SELECT DISTINCT * FROM {self._from(input)}"
            case UnionAll(inputs=inputs):
                return " UNION ALL ".join(f"(SELECT * FROM {self._from(i)})" for i in inputs)
            case Sort(input=input, keys=sort_keys):
                return f"SELECT * FROM {self._from(input)}{order_by(sort_terms(sort_keys, self.sorted_by))}"
            case Limit():
                return self._limit(plan)
            case Recursive():
                return self._recursive(plan)
            case WorkingTable(number=number):
                return f"SELECT {columns(len(plan.columns)) or '*'} FROM round{number}"
            case Generate():
                return self._generate(plan)
            case SetOperation(left=left, right=right, kind=kind, all=all_rows):
                word = kind.upper() + (" ALL" if all_rows else "")
                return f"(SELECT * FROM {self._from(left)}) {word} (SELECT * FROM {self._from(right)})"
            case TopK():
                return self._top(plan)
            case Window():
                width = len(plan.input.columns)
                calls = (f"{window(c, plan, self.scalar)} AS c{width + i}" for i, c in enumerate(plan.calls))
                return f"SELECT {', '.join([*([columns(width)] if width else []), *calls])} FROM {self._from(plan.input)}"
            case _:
                assert_never(plan)

    def _from(self, plan: Relation) -> str:
        """Returns an item for FROM: a sub-select, or the name of a common table expression if it is shared."""
        if id(plan) not in self.shared:
            return f"({self.relation(plan)})"
        if id(plan) not in self.names:
            text = self.relation(plan)
            self.names[id(plan)] = f"part{len(self.names)}"
            self.written.append((self.names[id(plan)], text))
        return self.names[id(plan)]

    def _recursive(self, plan: Recursive) -> str:
        base, step, name, shown = self._from(plan.base), self._from(plan.step), f"round{plan.number}", columns(len(plan.columns))
        if plan.all or not any(has_equal_forms(f.type) for f in plan.columns):
            each = f"SELECT * FROM {base} UNION{' ALL' if plan.all else ''} SELECT * FROM {step}"
            return f"WITH RECURSIVE {name}({shown}) AS ({each}) SELECT * FROM {name}"
        # a round adds the rows whose sort keys are new, each in its smallest form
        keys = [self.scalar(sort_key(Column(i, f.type))) for i, f in enumerate(plan.columns)]
        names = ", ".join(f"k{i}" for i in range(len(keys)))
        form = f"min(struct_pack({', '.join(f'c{i} := c{i}' for i in range(len(keys)))})) AS form"

        def distinct(rows: str) -> str:
            keyed = f"SELECT *, {', '.join(f'{key} AS k{i}' for i, key in enumerate(keys))} FROM {rows}"
            values = ", ".join(f"form.c{i} AS c{i}" for i in range(len(keys)))
            return f"SELECT {values}, {names} FROM (SELECT {names}, {form} FROM ({keyed}) GROUP BY {names})"

        same = " AND ".join(f"r.k{i} IS NOT DISTINCT FROM earlier.k{i}" for i in range(len(keys)))
        added = f"SELECT * FROM ({distinct(step)}) r ANTI JOIN recurring.{name} earlier ON {same}"
        each = f"SELECT * FROM ({distinct(base)}) UNION {added}"
        return f"WITH RECURSIVE {name}({shown}, {names}) USING KEY ({names}) AS ({each}) SELECT {shown} FROM {name}"

    def _scan(self, plan: Scan) -> str:
        width = len(plan.columns)
        if plan.key is not None or is_system(plan.relation):
            return f"SELECT {columns(width)} FROM r{plan.relation}"
        # only rows with several copies need range(); relations of the schema tailgate have no weights
        once = f"SELECT {columns(width)} FROM r{plan.relation} WHERE {WEIGHT} = 1"
        often = f"SELECT {columns(width)} FROM r{plan.relation}, range({WEIGHT}) WHERE {WEIGHT} > 1"
        return f"{once} UNION ALL {often}"

    def _join(self, plan: Join) -> str:
        left, right = len(plan.left.columns), len(plan.right.columns)
        renamed = ", ".join(f"c{i} AS c{left + i}" for i in range(right)) or "1 AS nothing"
        sides = f"{self._from(plan.left)} l", f"(SELECT {renamed} FROM {self._from(plan.right)}) r"
        width = left if plan.kind in ("semi", "anti") else left + right
        shown = columns(width) or "1 AS nothing"
        if plan.kind == "cross" or plan.condition is None:
            return f"SELECT {shown} FROM {sides[0]} CROSS JOIN {sides[1]}"
        return f"SELECT {shown} FROM {sides[0]} {KEYWORDS[plan.kind]} {sides[1]} ON {self.condition(plan.condition)}"

    def _aggregate(self, input: Relation, keys: tuple[Scalar, ...], aggregates: tuple[AggregateCall, ...]) -> str:
        terms = [f"{self.scalar(k)} AS c{i}" for i, k in enumerate(keys)]
        terms += [f"{aggregate(a, self.scalar)} AS c{len(keys) + i}" for i, a in enumerate(aggregates)]
        text = f"SELECT {', '.join(terms) or '1 AS nothing'} FROM {self._from(input)}"
        if keys:
            return text + " GROUP BY " + ", ".join(str(i + 1) for i in range(len(keys)))
        return text if aggregates else text + " LIMIT 1"

    def _generate(self, plan: Generate) -> str:
        if (series := _literal_series(plan)) is not None:
            return series
        width = len(plan.input.columns)
        texts = [self.scalar(a) for a in plan.arguments]
        types = [a.type for a in plan.arguments]
        array = fill_template(plan.function.duckdb, texts, types, plan.outputs[0].type, plan.outputs[0].type.duckdb, {"now": self.now})
        elements, numbers = "elements", "range(1, len(elements) + 1)"
        if plan.kind == "left":
            elements, numbers = (f"CASE WHEN coalesce(len(elements), 0) = 0 THEN [NULL] ELSE {e} END" for e in (elements, numbers))
        input_columns = columns(width) or "1 AS nothing"
        inner = f"SELECT {input_columns}, {array} AS elements FROM {self._from(plan.input)}"
        inner = f"SELECT {input_columns}, unnest({elements}) AS element, unnest({numbers}) AS number FROM ({inner})"
        outputs = [f"element.{name}" for name, _ in plan.function.outputs] if len(plan.outputs) > 1 else ["element"]
        if plan.ordinality:
            outputs.append("number")
        shown = [*([columns(width)] if width else []), *(f"{e} AS c{width + i}" for i, e in enumerate(outputs))]
        return f"SELECT {', '.join(shown)} FROM ({inner})"

    def _top(self, plan: TopK) -> str:
        width = len(plan.input.columns)
        split = f"PARTITION BY {', '.join(map(self.scalar, plan.keys))} " if plan.keys else ""
        number = f"row_number() OVER ({split}{self._all_in_order(plan.order, plan.input.columns)})"
        skipped = f"coalesce({_rows('OFFSET', '2201X', self.scalar(plan.offset))}, 0)" if plan.offset is not None else "0"
        conditions = [f"number > {skipped}"]
        if plan.count is not None:
            count = _rows("LIMIT", "2201W", self.scalar(plan.count))
            last = f"{skipped} + {count}"
            within = f"number <= {last}"
            if plan.ties:
                number += f" AS number, rank() OVER ({split}{order_by(sort_terms(plan.order, self.sorted_by))})"
                within = f"place <= {last} AND {count} > 0"
            conditions.append(f"({count} IS NULL OR {within})")
        name = "place" if plan.ties and plan.count is not None else "number"
        numbered = f"SELECT *, {number} AS {name} FROM {self._from(plan.input)}"
        return f"SELECT {columns(width) or '1 AS nothing'} FROM ({numbered}) WHERE {' AND '.join(conditions)}"

    def _all_in_order(self, keys: tuple[SortKey, ...], columns: tuple[Field, ...]) -> str:
        """Returns an ORDER BY that breaks ties by all columns, because a limit must be deterministic."""
        ties = (self.sorted_by(Column(i, column.type)) for i, column in enumerate(columns))
        return order_by([*sort_terms(keys, self.sorted_by), *(f"{tie} ASC NULLS LAST" for tie in ties)])

    def sorted_by(self, s: Scalar) -> str:
        """Returns the SQL of a sort key. DuckDB reads a column that is one from the keys, which have no -0."""
        text = self.scalar(s)
        return f"({text} + 0)" if s.type.name in ("float4", "float8") and not s.type.is_array else text

    def _limit(self, plan: Limit) -> str:
        text = f"SELECT * FROM {self._from(plan.input)}"
        if isinstance(plan.input, Sort):
            sort = plan.input
            text = f"SELECT * FROM {self._from(sort.input)}{self._all_in_order(sort.keys, sort.columns)}"
        if plan.count is not None:
            text += f" LIMIT {_rows('LIMIT', '2201W', self.scalar(plan.count))}"
        if plan.offset is not None:
            text += f" OFFSET {_rows('OFFSET', '2201X', self.scalar(plan.offset))}"
        return text

    def scalar(self, s: Scalar) -> str:
        """Returns the SQL of a scalar over columns c0, c1, …"""
        return self.condition(guarded(s))

    def condition(self, s: Scalar) -> str:
        """Returns the SQL of the condition of WHERE or ON."""
        return render_scalar(s, DUCKDB, now=self.now, constants=self.constants)


def _literal_series(plan: Generate) -> str | None:
    """Returns the SQL of a series of integer literals by DuckDB's table function, or None for anything else.

    The table function gives rows as they are read. An array of them would be in memory that DuckDB does not count.
    """
    bounds = [a.value for a in plan.arguments if isinstance(a, Literal) and a.type.name in ("int4", "int8") and isinstance(a.value, int)]
    one_row = isinstance(plan.input, Values) and not plan.input.columns
    if plan.function.name != "generate_series" or plan.kind != "inner" or not one_row or len(bounds) != len(plan.arguments):
        return None
    first, last, step = (*bounds, 1)[:3]
    if step == 0 or abs(last - first) >= abs(step) * SERIES_MAX:
        return None  # the general form raises the error
    terms = [f"CAST(generate_series AS {plan.outputs[0].type.duckdb}) AS c0"]
    if plan.ordinality:
        terms.append(f"(generate_series - ({first})) // ({step}) + 1 AS c1")
    return f"SELECT {', '.join(terms)} FROM generate_series(CAST({first} AS BIGINT), {last}, {step})"


ROWS_MAX = 1 << 61  # of LIMIT and of OFFSET: DuckDB's limit is twice as large, and their sum has to be a bigint


def _rows(clause: str, sqlstate: str, count: str) -> str:
    """Returns the SQL of a row count that fails with `sqlstate` if it is negative. One above ROWS_MAX is ROWS_MAX; NULL remains."""
    if not count.isdecimal() or int(count) > ROWS_MAX:
        count = f"(CASE WHEN {count} > {ROWS_MAX} THEN {ROWS_MAX} ELSE {count} END)"  # least() would ignore NULL
    return f"(CASE WHEN {count} < 0 THEN error('[{sqlstate}] {clause} must not be negative') ELSE {count} END)"
