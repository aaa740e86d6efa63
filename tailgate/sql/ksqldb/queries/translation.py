"""Expressions of ksqlDB as typed expressions of PostgreSQL's dialect.

    Constant, ColumnReference, FunctionCall, … ──► Translator(scope).expression ──► Typed(text, type)

The types are ksqlDB's: INT / INT is an INT, AVG a DOUBLE. The text has a cast wherever PostgreSQL's type
would differ. ksqlDB evaluates each item of a projection, argument of an aggregate, key and condition alone.
One whose evaluation fails is NULL: `Translator.value`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timezone
from itertools import count, pairwise

from typing_extensions import assert_never

from tailgate.lake.errors import (
    AmbiguousColumn,
    DatatypeMismatch,
    FeatureNotSupported,
    GroupingError,
    InvalidDatetimeFormat,
    UndefinedColumn,
    UndefinedFunction,
)
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb import functions, types
from tailgate.sql.ksqldb.expression_texts import text as expression_text
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.functions.calls import call, row_count, with_unit
from tailgate.sql.ksqldb.functions.volatile import OF_PLACE, OF_TIME, VOLATILE, now, time_of
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.pseudo_columns import PSEUDO_COLUMNS, WINDOW_BOUNDS, order
from tailgate.sql.ksqldb.queries.groups import Grouping, outside
from tailgate.sql.ksqldb.queries.lambdas import invocation
from tailgate.sql.ksqldb.queries.scope import ROWKEY, WINDOWSTART, Scope
from tailgate.sql.ksqldb.typed import comparisons, nested
from tailgate.sql.ksqldb.typed.arithmetic import arithmetic
from tailgate.sql.ksqldb.typed.casts import cast
from tailgate.sql.ksqldb.typed.coercion import of_one_type
from tailgate.sql.ksqldb.typed.constants import constant, timestamp_of
from tailgate.sql.ksqldb.typed.values import Typed, milliseconds

ROWTIME = "CAST(extract(epoch FROM {}) * 1000 AS bigint)"  # milliseconds, as in ksqlDB


class Translator:
    """Translates the expressions of one clause of a query, or of SELECT and then HAVING.

    `clause`: its name, for messages. `aggregates`: whether aggregates are allowed in SELECT and HAVING. Other clauses have neither
    aggregates nor table functions. `no_tables`: why SELECT has no table functions, if it has none. `per_record`: whether the clause is
    evaluated once for each row, so that it may contain functions whose value differs each time.
    """

    def __init__(
        self,
        scope: Scope,
        *,
        aggregates: bool = True,
        clause: str = "SELECT",
        no_tables: str = "",
        per_record: bool = False,
        grouping: Grouping | None = None,
    ) -> None:
        self._grouping = grouping = grouping or Grouping({}, {})
        self.scope, self._per_record = scope, per_record
        self._aggregates, self.clause, self._no_tables = aggregates, clause, no_tables
        self._limits, self._order, self._keys = grouping.limits, order(scope.position), grouping.keys
        self._in_table, self._in_aggregate = False, ""  # the name of the aggregate around an argument
        self._in_case: e.CaseExpression | None = None
        self.row_counts: dict[str, None] = {}  # the texts of the numbers of rows that table functions have returned, in order
        self._parameters: Mapping[str, Typed] = {}  # of lambdas, with their values
        self._variables = count(1)

    def expression(self, expression: e.Expression) -> Typed:
        """Returns a typed expression. Raises 42703, 42804, 42883, or 0A000 for one that is not supported."""
        if self._is_key(expression):
            return self._keys[expression]
        match expression:
            case e.Constant(value):
                return constant(value, expression.position)
            case e.ColumnReference():
                return self._column(expression)
            case e.FunctionCall():
                return self._call(expression)
            case e.Operation("+" | "-" | "*" | "/" | "%" as sign, operands):
                return arithmetic(sign, self._all(operands), expression.position, is_pulled=self.scope.is_pulled)
            case e.Operation("||", operands):
                return call("concat", self._all(operands), expression.position)
            case e.Operation("and" | "or"):
                return comparisons.in_order(expression, self.expression, self.expression, self._is_key)
            case e.Operation("not", operands):
                return comparisons.logical("not", self._all(operands), expression.position)
            case e.Operation() | e.InList() | e.Between():
                return comparisons.settled(self.condition(expression))
            case e.CaseExpression():
                return self._within_case(expression)
            case e.Cast(operand, target):
                return cast(self.expression(operand), target, expression.position)
            case e.FieldAccess(operand, name):
                return nested.field(self.expression(operand), name, expression_text(operand), expression.position)
            case e.Subscript(operand, index):
                return nested.subscript(self.expression(operand), self.expression(index), expression.position)
            case e.Constructor():
                return self._constructor(expression)
            case e.Lambda():
                raise UndefinedFunction("a lambda is an argument of TRANSFORM, FILTER and REDUCE only", position=expression.position)
            case _:
                assert_never(expression)

    def condition(self, expression: e.Expression, *, is_when: bool = False) -> Typed:
        """Returns a condition of WHERE, HAVING, CASE or FILTER, where NULL counts as false. Raises 42804 for another type than BOOLEAN."""
        at = expression.position
        match expression:
            case _ if self._is_key(expression):
                pass
            case e.Operation("and", operands):
                return comparisons.logical("and", [self.condition(operand) for operand in operands], at)
            case e.Operation("or"):
                return comparisons.in_order(expression, self.expression, self.condition, self._is_key)
            case e.Operation("not", operands):
                return comparisons.logical("not", self._all(operands), at)
            case e.Operation("is null", (operand,)):
                typed = self.expression(operand)
                return comparisons.condition(f"{typed.text} IS NULL", (typed,))
            case e.Operation("like", operands):
                return comparisons.like(self._all(operands), at)
            case e.Operation(sign, (left, right)) if sign in comparisons.NAMES:
                return comparisons.comparison(sign, self._operand(left, right), self._operand(right, left), at)
            case e.InList(operand, items, negated):
                return self._negated(comparisons.in_list(self._all((operand, *items)), (operand, *items), at), negated)
            case e.Between(operand, low, high, negated):
                bounds = self._operand(low, operand), self._operand(high, operand)
                return self._negated(comparisons.between(self._operand(operand, low), *bounds, at), negated)
        typed = self.expression(expression)
        if typed.type not in (types.BOOLEAN, types.UNKNOWN):
            type = types.in_schema(typed.type)
            if is_when:
                message = f"WHEN operand type should be boolean.\nType for '{expression_text(expression)}' is {type}"
                raise DatatypeMismatch(message, position=at)
            raise DatatypeMismatch(f"a condition should evaluate to BOOLEAN but is {type} instead", position=at)
        return typed

    def _is_key(self, expression: e.Expression) -> bool:
        return bool(self._keys) and expression in self._keys

    def _negated(self, condition: Typed, negated: bool) -> Typed:
        return comparisons.condition(f"NOT {comparisons.settled(condition).text}", (condition,)) if negated else condition

    def _operand(self, operand: e.Expression, other: e.Expression) -> Typed:
        """Returns an operand of a comparison. A text that is compared with ROWTIME, WINDOWSTART or WINDOWEND is its milliseconds."""
        is_time = isinstance(other, e.ColumnReference) and other.column in ("rowtime", *WINDOW_BOUNDS)
        if is_time and isinstance(operand, e.Constant) and isinstance(operand.value, str):
            try:
                at = timestamp_of(operand.value).replace(tzinfo=timezone.utc)
            except ValueError:
                raise InvalidDatetimeFormat(f"Failed to parse timestamp '{operand.value}'", position=operand.position) from None
            return constant(round(at.timestamp() * 1000), operand.position)
        return self.expression(operand)

    def body(self, function: e.Lambda, values: Sequence[Typed], *, condition: bool = False) -> Typed:
        """Returns the body of a lambda whose parameters have these values, as a condition of FILTER if `condition`."""
        outer, keys = self._parameters, self._keys
        self._parameters, self._keys = {**outer, **dict(zip(function.parameters, values, strict=True))}, outside(keys, function.parameters)
        try:
            return self.condition(function.body) if condition else self.expression(function.body)
        finally:
            self._parameters, self._keys = outer, keys

    def variable(self) -> str:
        """Returns the text of a new variable for a lambda."""
        return f"ksqldb_variable({next(self._variables)})"

    def value(self, expression: e.Expression) -> Typed:
        """Returns a typed expression that is NULL where its evaluation fails.

        Raises 0A000 for a value that contains another whose type is not supported.
        """
        typed = self.expression(expression)
        if (
            typed.type.name == "decimal"
            and typed.type.numbers
            and not isinstance(expression, e.ColumnReference)
            and not self._is_key(expression)
        ):
            # PostgreSQL's max, CASE and literals of numeric have no precision and scale
            typed = replace(typed, text=f"CAST({typed.text} AS {types.postgresql(typed.type)})")
        if typed.type.arguments and not types.is_complete(typed.type):
            raise FeatureNotSupported(
                f"a value of type {types.shown(typed.type)} is not supported here",
                hint="Read its fields by ->.",
                position=expression.position,
            )
        return typed.or_null()

    def where(self, expression: e.Expression) -> str:
        """Returns the text of WHERE or HAVING, which is not true where its evaluation fails. Raises 42804 for another type than BOOLEAN."""
        if expression == e.Constant(None):
            raise DatatypeMismatch("a condition should evaluate to BOOLEAN but is NULL instead", position=expression.position)
        return self.condition(expression).or_null().text

    def fields(self, access: e.FieldAccess) -> list[e.FieldAccess]:
        """Returns the fields of structure->*."""
        names = nested.fields(self.expression(access.operand), access.position)
        return [e.FieldAccess(access.operand, name, access.position) for name in names]

    def _all(self, expressions: Sequence[e.Expression]) -> list[Typed]:
        return [self.expression(expression) for expression in expressions]

    def _column(self, reference: e.ColumnReference) -> Typed:
        scope = self.scope
        if reference.source is None and reference.column in self._parameters:
            return self._parameters[reference.column]
        own = [source for source in scope.sources if reference.source is None or reference.source in source.names]
        owners = [source for source in own if reference.column in source.columns]
        if len(candidates := owners or [source for source in own if source.has_pseudo_column(reference.column)]) > 1:
            column = ksqldb_name(reference.column)
            listed = " or ".join(f"{ksqldb_name(source.names[0])}.{column}" for source in candidates)
            raise AmbiguousColumn(f"Column '{column}' is ambiguous. Could be {listed}.", position=reference.position)
        if owners:
            type = owners[0].columns[reference.column]
            return Typed(scope.text(reference.column, owners[0]), type)
        if text := scope.pseudo_column(reference):
            return Typed(ROWTIME.format(text) if reference.column == "rowtime" else text, PSEUDO_COLUMNS[reference.column])
        if scope.key is not None and reference.source is None and reference.column == scope.key_name:
            return scope.key
        for source in own:
            if source.unnamed_key is not None and reference.column == ROWKEY:
                column, type = source.unnamed_key
                return Typed(scope.text(column, source), type)
        if scope.window_end is not None and reference.source is None and reference.column in WINDOW_BOUNDS:
            is_start = reference.column == "windowstart"
            return Typed(WINDOWSTART if is_start else scope.window_end, types.BIGINT)
        prefix = f"{ksqldb_name(reference.source)}." if reference.source else ""
        column = f"{prefix}{ksqldb_name(reference.column)}"
        raise UndefinedColumn(f"{self.clause} column '{column}' cannot be resolved.", position=reference.position)

    def _constructor(self, constructor: e.Constructor) -> Typed:
        values = [value.or_null() for value in self._all(constructor.values)]  # an element that fails is NULL
        match constructor.kind:
            case "array":
                return nested.array_of(values, constructor.values, constructor.position)
            case "map":
                keys = self._all([k for k in constructor.keys if not isinstance(k, str)])
                return nested.map_of(keys, values, constructor.values, constructor.position)
            case "struct":
                return nested.struct_of([k for k in constructor.keys if isinstance(k, str)], values, constructor.position)

    def _call(self, function: e.FunctionCall) -> Typed:
        is_aggregate, is_table = function.name in functions.AGGREGATE_NAMES, function.name in functions.TABLE_NAMES
        if is_aggregate or is_table:
            self._check_place(function, is_aggregate=is_aggregate)
        if is_aggregate and not function.arguments:  # of ROWTIME, but COUNT counts rows
            if function.name == "count":
                return Typed("count(*)", types.BIGINT)
            function = replace(function, arguments=(e.ColumnReference("rowtime", None, function.position),), star=False)
        if function.star:
            raise UndefinedFunction(f"Function '{function.name.upper()}' does not accept parameters (*).", position=function.position)
        if function.name in functions.LAMBDA_NAMES:
            return invocation(function, self)
        if function.name in VOLATILE and not function.arguments:
            return self._volatile(function.name, function.position)
        function = with_unit(function)
        before = self._in_aggregate, self._in_table
        self._in_aggregate = before[0] or (function.name.upper() if is_aggregate else "")
        self._in_table = before[1] or is_table
        arguments = self._all(function.arguments)
        self._in_aggregate, self._in_table = before
        if is_aggregate or is_table:
            arguments = [argument.or_null() for argument in arguments]
        if is_table:
            self.row_counts[row_count(function.name, arguments, function.position)] = None
        order, of_rows = (self._order, self.scope.row_order) if is_aggregate else ((), ())
        typed = call(function.name, arguments, function.position, order, of_rows)
        limit = self._limits.get(function.name)
        return typed if limit is None else replace(typed, text=f"ksqldb_slice({typed.text}, 1, {limit})")

    def _volatile(self, name: str, position: int) -> Typed:
        """Returns the value of a volatile function: for each row, or outside of aggregates for each change of a group."""
        if self.scope.is_pulled and name in OF_TIME:
            return now(name)
        is_of_row = self._per_record or bool(self._in_aggregate)
        if name in OF_PLACE:
            place = self.scope.place if is_of_row else self._grouping.place
            return call(name, (), position, () if self._parameters or self._in_table else place)
        is_determined = is_of_row or not self._parameters
        if is_determined and self.scope.clock:
            return time_of(name, self.scope.clock if is_of_row else self._time_of_group())
        has_record = is_determined and (self._per_record or self._grouping.appends)
        typed = call(name, (), position, self.scope.record if has_record else ())
        return typed if is_of_row else replace(typed, text=f"max({typed.text})")  # the time of the last row

    def _time_of_group(self) -> str:
        """Returns the text of the time in milliseconds of the last change of a group whose rows have a clock."""
        if self.scope.position:
            return f"max({self.scope.clock})"
        moment = f"to_timestamp({self.scope.clock_of_place} / CAST(1000 AS double precision))"
        return milliseconds(f"ksqldb_high_watermark({moment})")

    def _check_place(self, function: e.FunctionCall, *, is_aggregate: bool) -> None:
        """Raises 42803 for an aggregate or a table function in a place that has none."""
        name, message = function.name.upper(), ""
        if is_aggregate and self._in_aggregate:
            message = f"Aggregate functions can not be nested: {self._in_aggregate}({name}())"
        elif not is_aggregate and self._in_table:
            message = "Table functions can not be nested"
        elif not is_aggregate and self._in_case is not None:
            message = f"Table functions cannot be used in CASE: {expression_text(self._in_case)}"
        elif self._parameters:
            message = f"Lambda functions can not contain {'aggregate' if is_aggregate else 'table'} functions: {name}"
        elif self.clause not in ("SELECT", "HAVING"):
            message = f"{self.clause} does not support {'aggregate' if is_aggregate else 'table'} functions: {name}"
            message += " is an aggregate function." if is_aggregate else ""
        elif is_aggregate and not self._aggregates:
            message = f"Use of aggregate function {name} requires a GROUP BY clause."
        elif not is_aggregate:
            message = self._no_tables
        if message:
            raise GroupingError(message, position=function.position)

    def _conditions(self, case: e.CaseExpression) -> list[Typed]:
        """Returns the conditions of the branches of CASE. One that is NULL makes the result NULL, as an operand of AND or OR."""
        if case.operand is None:
            return [
                # AND, OR or NOT, in which NULL is not false
                self.expression(condition)
                if isinstance(condition, e.Operation) and comparisons.may_be_null(condition, self._is_key)
                else self.condition(condition, is_when=True)
                for condition, _ in case.branches
            ]
        operand = self.expression(case.operand)
        return [comparisons.comparison("=", operand, self.expression(value), value.position) for value, _ in case.branches]

    def _within_case(self, case: e.CaseExpression) -> Typed:
        before, self._in_case = self._in_case, self._in_case or case
        try:
            return self._case(case)
        finally:
            self._in_case = before

    def _case(self, case: e.CaseExpression) -> Typed:
        conditions = self._conditions(case)
        expressions = [result for _, result in case.branches] + ([] if case.otherwise is None else [case.otherwise])
        results = self._all(expressions)
        if all(result.type == types.UNKNOWN for result in results):
            raise DatatypeMismatch("Invalid Case expression. All case branches have a NULL type", position=case.position)
        _check_results(case, [result.type for result in results])
        values, type = of_one_type(results, expressions, case.position)
        whens, copied = "", 0
        for (condition, _), when, value in zip(case.branches, conditions, values, strict=False):
            if case.operand is None and comparisons.may_be_null(condition, self._is_key):
                whens += f" WHEN {when.text} IS NULL THEN NULL"
                copied += len(when.text)
            whens += f" WHEN {when.text} THEN {value.text}"
        comparisons.check_copied(copied, case.position)
        ending = "" if case.otherwise is None else f" ELSE {values[-1].text}"
        return Typed(f"CASE{whens}{ending} END", type, any(part.may_fail for part in (*values, *conditions)))


def _check_results(case: e.CaseExpression, results: Sequence[TypeName]) -> None:
    """Raises 42804 unless the results of CASE, which have these types, are all numbers or all of one type.

    Numbers inside of one type may differ, too.
    """
    branches = [(type, branch) for type, branch in zip(results, case.branches, strict=False) if type != types.UNKNOWN]
    for (previous, _), (type, (condition, value)) in pairwise(branches):
        if _kind(previous) != _kind(type):
            raise DatatypeMismatch(
                "Invalid Case expression. Type for all 'THEN' clauses should be the same.\n"
                f"THEN expression 'WHEN {expression_text(condition)} THEN {expression_text(value)}' has type: {types.in_schema(type)}.\n"
                f"Previous THEN expression(s) type: {types.in_schema(previous)}.",
                position=case.position,
            )
    default = types.UNKNOWN if case.otherwise is None else results[-1]
    if branches and default != types.UNKNOWN and _kind(branches[-1][0]) != _kind(default):
        raise DatatypeMismatch(
            "Invalid Case expression. Type for the default clause should be the same as for 'THEN' clauses.\n"
            f"THEN type: {types.in_schema(branches[-1][0])}.\nDEFAULT type: {types.in_schema(default)}.",
            position=case.position,
        )


def _kind(type: TypeName) -> TypeName:
    """Returns a type with one type in place of all numbers."""
    if type.name in types.NUMBERS:
        return types.DOUBLE
    return replace(type, arguments=tuple(map(_kind, type.arguments)))
