"""Expressions of ksqlDB as typed expressions of PostgreSQL's dialect.

    Constant, ColumnReference, FunctionCall, … ──► Translator(scope).expression ──► Typed(text, type)

The types are ksqlDB's: INT / INT is an INT, AVG a DOUBLE. The text has a cast wherever PostgreSQL's type
would differ. ksqlDB evaluates each item of a projection, argument of an aggregate, key and condition alone.
One whose evaluation fails is NULL: `Translator.value`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from typing_extensions import assert_never

from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import AmbiguousColumn, DatatypeMismatch, FeatureNotSupported, GroupingError, UndefinedColumn
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb import functions, types
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.functions.calls import call, with_unit
from tailgate.sql.ksqldb.names import catalog_name, ksqldb_name
from tailgate.sql.ksqldb.names import quoted as ksqldb_quoted
from tailgate.sql.ksqldb.typed import nested
from tailgate.sql.ksqldb.typed.arithmetic import arithmetic
from tailgate.sql.ksqldb.typed.casts import cast
from tailgate.sql.ksqldb.typed.values import Typed, coerced, literal

INT_MAX, BIGINT_MAX = 2**31 - 1, 2**63 - 1
PSEUDO_COLUMNS = {"rowtime": types.BIGINT, "rowpartition": types.INT, "rowoffset": types.BIGINT}
WINDOW_BOUNDS = ("windowstart", "windowend")
ROWKEY = "rowkey"  # the key of a full join, and an unnamed key
ROWTIME = "CAST(extract(epoch FROM {}) * 1000 AS bigint)"  # milliseconds, as in ksqlDB
WINDOWSTART = "CAST(extract(epoch FROM window_start) * 1000 AS bigint)"  # window_start: a column of tumble, hop and session


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns of the source of a query, in order, without the pseudo columns.

    `names`: the names that may qualify a column. `has_position`: whether the pseudo columns exist. `window_end`: the
    text of WINDOWEND, if there are windows: then WINDOWSTART and WINDOWEND exist. `joined`: the other sources of a join;
    then the texts of columns are qualified with the first of the names. `key`: the text of ROWKEY, if it exists.
    `unnamed_key`: the column, which may be hidden, that ROWKEY stands for in a source with an unnamed key.
    `of_join`: the texts of the pseudo columns of the rows of a join of streams.
    """

    columns: Mapping[str, TypeName]
    names: tuple[str, ...]
    has_position: bool = True
    window_end: str | None = None
    joined: tuple[Scope, ...] = ()
    key: Typed | None = None
    unnamed_key: tuple[str, TypeName] | None = None
    of_join: tuple[str, ...] = ()

    @property
    def position(self) -> tuple[str, ...]:
        """Returns the texts of the pseudo columns of a row: those of the record of a stream that it results from, if any."""
        timed = next((source for source in self.sources if source.has_position), None)
        return self.of_join or (() if timed is None else tuple(self.text(column, timed) for column in PSEUDO_COLUMNS))

    @property
    def sources(self) -> tuple[Scope, ...]:
        """Returns the scopes of all sources."""
        return (self, *self.joined)

    def text(self, column: str, source: Scope) -> str:
        """Returns the text of a column of a source."""
        return f"{quoted(source.names[0])}.{quoted(column)}" if self.joined else quoted(column)

    def pseudo_column(self, reference: e.ColumnReference) -> str:
        """Returns the text of a pseudo column; empty if there is none. Without a source it is that of the query's rows."""
        if reference.column not in PSEUDO_COLUMNS:
            return ""
        if reference.source is None:
            return self.position[list(PSEUDO_COLUMNS).index(reference.column)] if self.position else ""
        owners = [s for s in self.sources if reference.source in s.names and s.has_position]
        return self.text(reference.column, owners[0]) if owners else ""

    def name(self, column: str, source: Scope) -> str:
        """Returns the name that SELECT * of a join gives to a column: SOURCE_COLUMN."""
        return catalog_name(f"{ksqldb_name(source.names[0])}_{ksqldb_name(column)}")


class Translator:
    """Translates the expressions of one query. `aggregates`: whether aggregates are allowed."""

    def __init__(self, scope: Scope, *, aggregates: bool = True) -> None:
        self.scope = scope
        self._aggregates = aggregates
        self._in_aggregate = False

    def expression(self, expression: e.Expression) -> Typed:
        """Returns a typed expression. Raises 42703, 42804, 42883, or 0A000 for one that is not supported."""
        match expression:
            case e.Constant():
                return _constant(expression)
            case e.ColumnReference():
                return self._column(expression)
            case e.FunctionCall():
                return self._call(expression)
            case e.Operation():
                return self._operation(expression)
            case e.InList(operand, items, negated):
                operands = self._all((operand, *items))
                values = ", ".join(item.text for item in operands[1:])
                return _condition(f"{operands[0].text}{' NOT' * negated} IN ({values})", operands)
            case e.Between(operand, low, high, negated):
                operands = self._all((operand, low, high))
                texts = [part.text for part in operands]
                return _condition(f"{texts[0]}{' NOT' * negated} BETWEEN {texts[1]} AND {texts[2]}", operands)
            case e.CaseExpression():
                return self._case(expression)
            case e.Cast(operand, target):
                return cast(self.expression(operand), target, expression.position)
            case e.FieldAccess(operand, name):
                return nested.field(self.expression(operand), name, expression.position)
            case e.Subscript(operand, index):
                return nested.subscript(self.expression(operand), self.expression(index), expression.position)
            case e.Constructor():
                return self._constructor(expression)
            case e.Lambda():
                raise FeatureNotSupported("a lambda is not supported", position=expression.position)
            case _:
                assert_never(expression)

    def value(self, expression: e.Expression) -> Typed:
        """Returns a typed expression that is NULL where its evaluation fails.

        Raises 0A000 for a value that contains another whose type is not supported.
        """
        typed = self.expression(expression)
        if typed.type.arguments and not types.is_complete(typed.type):
            raise FeatureNotSupported(
                f"a value of type {types.shown(typed.type)} is not supported here",
                hint="Read its fields by ->.",
                position=expression.position,
            )
        return typed.or_null()

    def fields(self, access: e.FieldAccess) -> list[e.FieldAccess]:
        """Returns the fields of structure->*."""
        names = nested.fields(self.expression(access.operand), access.position)
        return [e.FieldAccess(access.operand, name, access.position) for name in names]

    def _all(self, expressions: Sequence[e.Expression]) -> list[Typed]:
        return [self.expression(expression) for expression in expressions]

    def _column(self, reference: e.ColumnReference) -> Typed:
        scope = self.scope
        own = [source for source in scope.sources if reference.source is None or reference.source in source.names]
        owners = [source for source in own if reference.column in source.columns]
        if len(owners) > 1:
            column = ksqldb_name(reference.column)
            listed = " or ".join(f"{ksqldb_name(source.names[0])}.{column}" for source in owners)
            raise AmbiguousColumn(f"Column '{column}' is ambiguous. Could be {listed}.", position=reference.position)
        if owners:
            type = owners[0].columns[reference.column]
            return Typed(scope.text(reference.column, owners[0]), type)
        if text := scope.pseudo_column(reference):
            return Typed(ROWTIME.format(text) if reference.column == "rowtime" else text, PSEUDO_COLUMNS[reference.column])
        if scope.key is not None and reference.source is None and reference.column == ROWKEY:
            return scope.key
        for source in own:
            if source.unnamed_key is not None and reference.column == ROWKEY:
                column, type = source.unnamed_key
                return Typed(scope.text(column, source), type)
        if scope.window_end is not None and reference.source is None and reference.column in WINDOW_BOUNDS:
            is_start = reference.column == "windowstart"
            return Typed(WINDOWSTART if is_start else scope.window_end, types.BIGINT)
        prefix = f"{ksqldb_name(reference.source)}." if reference.source else ""
        raise UndefinedColumn(f"Column '{prefix}{ksqldb_name(reference.column)}' cannot be resolved.", position=reference.position)

    def _constructor(self, constructor: e.Constructor) -> Typed:
        values = self._all(constructor.values)
        match constructor.kind:
            case "array":
                return nested.array_of(values, constructor.position)
            case "map":
                return nested.map_of(self._all([k for k in constructor.keys if not isinstance(k, str)]), values, constructor.position)
            case "struct":
                return nested.struct_of([k for k in constructor.keys if isinstance(k, str)], values)

    def _call(self, function: e.FunctionCall) -> Typed:
        is_aggregate = function.name in functions.AGGREGATE_NAMES
        if is_aggregate and not self._aggregates:
            name = function.name.upper()
            raise GroupingError(f"Use of aggregate function {name} requires a GROUP BY clause.", position=function.position)
        if is_aggregate and self._in_aggregate:
            raise GroupingError("Aggregate functions can not be nested", position=function.position)
        if function.star:
            return Typed("count(*)", types.BIGINT)
        is_table = function.name in functions.TABLE_NAMES
        if is_table and self._aggregates:
            raise GroupingError("Table functions cannot be used with aggregations.", position=function.position)
        function = with_unit(function)
        self._in_aggregate |= is_aggregate
        arguments = self._all(function.arguments)
        if is_aggregate:
            self._in_aggregate = False
        if is_aggregate or is_table:
            arguments = [argument.or_null() for argument in arguments]
        return call(function.name, arguments, function.position, list(self.scope.position) if is_aggregate else [])

    def _operation(self, operation: e.Operation) -> Typed:
        operands = self._all(operation.operands)
        texts = [operand.text for operand in operands]
        match operation.operator:
            case "not":
                return _condition(f"NOT {texts[0]}", operands)
            case "is null":
                return _condition(f"{texts[0]} IS NULL", operands)
            case "like":
                escape = f" ESCAPE {texts[2]}" if len(texts) == 3 else ""
                is_constant = isinstance(operation.operands[1], e.Constant)
                return _condition(f"{texts[0]} LIKE {texts[1]}{escape}", operands, may_fail=not is_constant)
            case "||":
                return Typed(f"({texts[0]} || {texts[1]})", types.VARCHAR, may_fail=any(o.may_fail for o in operands))
            case "+" | "-" | "*" | "/" | "%" as sign:
                return arithmetic(sign, operands, operation.position)
            case sign:
                return _condition(f"{texts[0]} {sign.upper()} {texts[1]}", operands)

    def _case(self, case: e.CaseExpression) -> Typed:
        conditions = [self.expression(condition) for condition, _ in case.branches]
        results = [self.expression(result) for _, result in case.branches]
        if case.otherwise is not None:
            results.append(self.expression(case.otherwise))
        type = types.common([r.type for r in results])
        values = [coerced(r, type) if r.type != types.UNKNOWN else r for r in results]
        operands = [] if case.operand is None else [self.expression(case.operand)]
        whens = "".join(f" WHEN {c.text} THEN {v.text}" for c, v in zip(conditions, values, strict=False))
        ending = "" if case.otherwise is None else f" ELSE {values[-1].text}"
        may_fail = any(part.may_fail for part in (*operands, *values, *conditions))
        return Typed(f"CASE{''.join(f' {o.text}' for o in operands)}{whens}{ending} END", type, may_fail)


def _condition(text: str, operands: list[Typed], *, may_fail: bool = False) -> Typed:
    """Returns a condition. `may_fail`: it may fail although its operands do not."""
    return Typed(f"({text})", types.BOOLEAN, may_fail=may_fail or any(operand.may_fail for operand in operands))


def _constant(constant: e.Constant) -> Typed:
    value = constant.value
    match value:
        case None:
            return Typed("NULL", types.UNKNOWN)
        case bool():
            return Typed(str(value).lower(), types.BOOLEAN)
        case int():
            if abs(value) > BIGINT_MAX:
                raise DatatypeMismatch(f"{value} is out of the range of BIGINT", position=constant.position)
            type = types.INT if abs(value) <= INT_MAX else types.BIGINT
            return Typed(str(value) if value >= 0 else f"({value})", type)
        case float():
            return Typed(f"CAST('{value!r}' AS double precision)", types.DOUBLE)
        case Decimal():
            digits = value.as_tuple()
            scale = max(-int(digits.exponent), 0)
            return Typed(f"({value:f})", TypeName("decimal", (max(len(digits.digits), scale), scale)))
        case str():
            return Typed(literal(value), types.VARCHAR)
    raise AssertionError(value)


def name_of(item: e.SelectItem, number: int, scope: Scope) -> str:
    """Returns the name of a column of a projection: its alias, its column or field, or KSQL_COL_n.

    A column of a join whose name several sources have is SOURCE_COLUMN.
    """
    match item.expression:
        case _ if item.alias is not None:
            return item.alias
        case e.ColumnReference(column, str(source)) if sum(column in s.columns for s in scope.sources) > 1:
            return scope.name(column, next(s for s in scope.sources if source in s.names))
        case e.ColumnReference(column):
            return column
        case e.FieldAccess(_, str(name)):
            return name
    return f"ksql_col_{number}"


def listed_names(names: tuple[str, ...]) -> str:
    """Returns names as ksqlDB spells them."""
    return ", ".join(map(ksqldb_quoted, names))
