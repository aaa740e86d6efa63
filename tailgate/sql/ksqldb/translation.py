"""Expressions of ksqlDB as typed expressions of PostgreSQL's dialect.

    Constant, ColumnReference, FunctionCall, … ──► Translator(scope).expression ──► Typed(text, type)

The types are ksqlDB's: INT / INT is an INT, AVG a DOUBLE. The text has a cast wherever PostgreSQL's type
would differ. A division by zero is NULL. ksqlDB evaluates each item of a projection, argument of an
aggregate, key and condition alone. One whose evaluation fails is NULL: `Translator.value`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from typing_extensions import assert_never

from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import AmbiguousColumn, DatatypeMismatch, FeatureNotSupported, GroupingError, UndefinedColumn
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb import functions, types
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import catalog_name, ksqldb_name
from tailgate.sql.ksqldb.names import quoted as ksqldb_quoted

INT_MAX, BIGINT_MAX = 2**31 - 1, 2**63 - 1
PSEUDO_COLUMNS = {"rowtime": types.BIGINT, "rowpartition": types.INT, "rowoffset": types.BIGINT}
WINDOW_BOUNDS = ("windowstart", "windowend")
ROWTIME = "CAST(extract(epoch FROM {}) * 1000 AS bigint)"  # milliseconds, as in ksqlDB
WINDOWSTART = "CAST(extract(epoch FROM window_start) * 1000 AS bigint)"  # window_start: a column of tumble and hop


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression of PostgreSQL's dialect and its type in ksqlDB.

    `is_json`: a structure inside a jsonb. `may_fail`: its evaluation may raise an error.
    """

    text: str
    type: TypeName
    is_json: bool = False
    may_fail: bool = False

    def or_null(self) -> Typed:
        """Returns an expression that is NULL where this one fails."""
        return replace(self, text=f"try({self.text})", may_fail=False) if self.may_fail else self


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns of the source of a query, in order, without the pseudo columns.

    `names`: the names that may qualify a column. `has_position`: whether the pseudo columns exist. `window`: the size
    of the windows in ms, if there are any: then WINDOWSTART and WINDOWEND exist. `joined`: the other sources of a join;
    then the texts of columns are qualified with the first of the names. `key`: the text of ROWKEY, if it exists.
    """

    columns: Mapping[str, TypeName]
    names: tuple[str, ...]
    has_position: bool = True
    window: int | None = None
    joined: tuple[Scope, ...] = ()
    key: Typed | None = None

    @property
    def sources(self) -> tuple[Scope, ...]:
        """Returns the scopes of all sources."""
        return (self, *self.joined)

    def text(self, column: str, source: Scope) -> str:
        """Returns the text of a column of a source."""
        return f"{quoted(source.names[0])}.{quoted(column)}" if self.joined else quoted(column)

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
                operands = [self.scalar(part) for part in (operand, *items)]
                values = ", ".join(item.text for item in operands[1:])
                return _condition(f"{operands[0].text}{' NOT' * negated} IN ({values})", operands)
            case e.Between(operand, low, high, negated):
                operands = [self.scalar(part) for part in (operand, low, high)]
                texts = [part.text for part in operands]
                return _condition(f"{texts[0]}{' NOT' * negated} BETWEEN {texts[1]} AND {texts[2]}", operands)
            case e.CaseExpression():
                return self._case(expression)
            case e.Cast(operand, target):
                value = self.scalar(operand)
                may_fail = value.may_fail or not types.widens(value.type, target)
                return Typed(f"CAST({value.text} AS {types.postgresql(target)})", target, may_fail=may_fail)
            case e.FieldAccess():
                return self._field(expression)
            case e.Subscript() | e.Constructor() | e.Lambda():
                what = {e.Subscript: "x[…]", e.Constructor: "a constructor of ARRAY, MAP or STRUCT", e.Lambda: "a lambda"}[type(expression)]
                raise FeatureNotSupported(f"{what} is not supported", hint="Read fields of structures by ->.", position=expression.position)
            case _:
                assert_never(expression)

    def scalar(self, expression: e.Expression) -> Typed:
        """Returns a typed expression that is not a structure. Raises 0A000."""
        typed = self.expression(expression)
        if typed.is_json:
            raise FeatureNotSupported(
                f"a value of type {types.shown(typed.type)} is not supported here",
                hint="Read its fields by ->.",
                position=expression.position,
            )
        return typed

    def value(self, expression: e.Expression) -> Typed:
        """Returns a typed expression that is NULL where its evaluation fails, and is not a structure. Raises 0A000."""
        return self.scalar(expression).or_null()

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
            return Typed(scope.text(reference.column, owners[0]), type, type.name in types.STRUCTURES)
        timed = [source for source in own if source.has_position]
        if timed and reference.column in PSEUDO_COLUMNS:
            text = scope.text(reference.column, timed[0])
            return Typed(ROWTIME.format(text) if reference.column == "rowtime" else text, PSEUDO_COLUMNS[reference.column])
        if scope.key is not None and reference.source is None and reference.column == "rowkey":
            return scope.key
        if scope.window is not None and reference.source is None and reference.column in WINDOW_BOUNDS:
            is_start = reference.column == "windowstart"
            return Typed(WINDOWSTART if is_start else f"({WINDOWSTART} + {scope.window})", types.BIGINT)
        prefix = f"{ksqldb_name(reference.source)}." if reference.source else ""
        raise UndefinedColumn(f"Column '{prefix}{ksqldb_name(reference.column)}' cannot be resolved.", position=reference.position)

    def _field(self, access: e.FieldAccess) -> Typed:
        """Translates operand->field. The names of fields match regardless of case."""
        operand = self.expression(access.operand)
        if access.name is None:
            raise FeatureNotSupported("->* is not supported", hint="Write the fields out.", position=access.position)
        if operand.type.name != "struct":
            raise DatatypeMismatch(f"Expected STRUCT type, got: {types.shown(operand.type)}", position=access.position)
        fields = dict(zip(operand.type.fields, operand.type.arguments, strict=True))
        spelling = next((f for f in fields if f == access.name), None) or next(
            (f for f in fields if f.lower() == access.name.lower()), None
        )
        if spelling is None:
            raise UndefinedColumn(f"Could not find field '{ksqldb_name(access.name)}'.", position=access.position)
        type = fields[spelling]
        literal = "'" + spelling.replace("'", "''") + "'"
        if type.name in types.STRUCTURES:
            return Typed(f"({operand.text} -> {literal})", type, is_json=True)
        value = f"({operand.text} ->> {literal})"
        return Typed(value if type == types.VARCHAR else f"CAST({value} AS {types.postgresql(type)})", type)

    def _call(self, call: e.FunctionCall) -> Typed:
        is_aggregate = call.name in functions.AGGREGATE_NAMES
        if is_aggregate and not self._aggregates:
            raise GroupingError(f"Use of aggregate function {call.name.upper()} requires a GROUP BY clause.", position=call.position)
        if is_aggregate and self._in_aggregate:
            raise GroupingError("Aggregate functions can not be nested", position=call.position)
        if call.star:
            return Typed("count(*)", types.BIGINT)
        self._in_aggregate |= is_aggregate
        arguments = tuple(self.scalar(argument) for argument in call.arguments)
        if is_aggregate:
            self._in_aggregate = False
            arguments = tuple(argument.or_null() for argument in arguments)
        function = functions.find(call.name, tuple(a.type for a in arguments), call.position)
        texts = [_widened(a, kind) for a, kind in zip(arguments, (*function.arguments, *("any",) * len(arguments)), strict=False)]
        result = function.result if isinstance(function.result, TypeName) else _first_known(arguments)
        text = function.template.replace("{*}", ", ".join(texts))
        may_fail = function.may_fail or any(a.may_fail for a in arguments)
        return Typed(text.format(*texts) if "{" in text else text, result, may_fail=may_fail)

    def _operation(self, operation: e.Operation) -> Typed:
        operands = [self.scalar(operand) for operand in operation.operands]
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
                return _arithmetic(sign, operands, operation.position)
            case sign:
                return _condition(f"{texts[0]} {sign.upper()} {texts[1]}", operands)

    def _case(self, case: e.CaseExpression) -> Typed:
        branches = [(self.scalar(condition), self.scalar(result)) for condition, result in case.branches]
        otherwise = None if case.otherwise is None else self.scalar(case.otherwise)
        results = [result for _, result in branches] + ([] if otherwise is None else [otherwise])
        operands = [] if case.operand is None else [self.scalar(case.operand)]
        whens = "".join(f" WHEN {condition.text} THEN {result.text}" for condition, result in branches)
        ending = "" if otherwise is None else f" ELSE {otherwise.text}"
        may_fail = any(part.may_fail for part in (*operands, *results, *(condition for condition, _ in branches)))
        return Typed(f"CASE{''.join(f' {o.text}' for o in operands)}{whens}{ending} END", _first_known(results), may_fail=may_fail)


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
            return Typed("'" + value.replace("'", "''") + "'", types.VARCHAR)
    raise AssertionError(value)


def _arithmetic(sign: str, operands: list[Typed], position: int) -> Typed:
    """Returns a sum, product, quotient or remainder in the wider type. A quotient by zero is NULL."""
    if any(o.type.name not in types.NUMBERS and o.type != types.UNKNOWN for o in operands):
        listed = " and ".join(types.shown(o.type) for o in operands)
        raise DatatypeMismatch(f"Unsupported arithmetic types. {listed}", position=position)
    names = [o.type.name for o in operands if o.type != types.UNKNOWN]
    widest = max(names, key=types.NUMBERS.index, default="int")
    type = next((o.type for o in operands if o.type.name == widest), types.INT)
    if widest == "decimal":
        raise FeatureNotSupported("arithmetic with DECIMAL is not supported", hint="CAST the operands AS DOUBLE.", position=position)
    if len(operands) == 1:
        return Typed(f"(- {operands[0].text})", type, may_fail=True)
    left, right = (_widened(o, type) for o in operands)
    divisor = f"nullif({right}, 0)" if sign in ("/", "%") else right
    if sign == "%" and type == types.DOUBLE:
        raise FeatureNotSupported("% of DOUBLE is not supported", hint="CAST the operands AS BIGINT.", position=position)
    by_constant = sign in ("/", "%") and right.isdigit()  # a positive number
    return Typed(f"({left} {sign} {divisor})", type, may_fail=not by_constant or operands[0].may_fail)


def _widened(argument: Typed, kind: TypeName | str) -> str:
    """Returns an argument, with a cast if its type is narrower than the wanted one."""
    if not isinstance(kind, TypeName) or argument.type in (kind, types.UNKNOWN):
        return argument.text
    return f"CAST({argument.text} AS {types.postgresql(kind)})"


def _first_known(arguments: tuple[Typed, ...] | list[Typed]) -> TypeName:
    """Returns the type of the first argument that is not NULL."""
    return next((a.type for a in arguments if a.type != types.UNKNOWN), types.VARCHAR)


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
