"""Renders a scalar as SQL of Spark or DuckDB.

Syntax that both engines share is in `render_scalar`, the differences are in a `Dialect` for each engine.
How to write a function is in its row of the function catalogue. Columns are c0, c1, … unless the
caller passes `names`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count

from typing_extensions import assert_never

from tailgate.lake import sortable
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import INT4, Type
from tailgate.sql.functions.arithmetic import INTEGERS
from tailgate.sql.functions.entry import Function
from tailgate.sql.plan import (
    And,
    Call,
    Case,
    Coalesce,
    Column,
    GreatestLeast,
    InList,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
    Parameter,
    Scalar,
    Value,
)  # fmt: skip
from tailgate.sql.plan.rewriting import walk
from tailgate.sql.render.dialects import Dialect
from tailgate.sql.render.patterns import Patterns
from tailgate.sql.render.shared_arguments import SqlText, atom, checked_length, own_size, share_arguments, uses
from tailgate.sql.render.templates import fill_template

LONG_MIN = 1000  # characters; longer literals become parameters of DuckDB, which need no parsing and do not count as SQL
CONSTANTS = 100_000  # these parameters have numbers above this; parameters of statements have numbers up to 65535


def render_scalar(
    scalar: Scalar, dialect: Dialect, names: Sequence[str] | None = None, now: str = "", constants: list[Value] | None = None
) -> str:
    """Returns the SQL of a scalar.

    `now`: SQL for the time of the statement. `constants`: long literals are appended to it and become
    parameters; without it, they are written into the SQL. Raises 0A000 if the engine cannot express
    the scalar, and 54001 if the SQL is too long.
    """
    return _Renderer(dialect, names, now, constants, (f"tg_v{number}" for number in count())).render(scalar).text


@dataclass(frozen=True, slots=True)
class _Renderer:
    """Renders the scalars of one expression. `variables`: names for arguments that are computed once."""

    dialect: Dialect
    names: Sequence[str] | None
    now: str
    constants: list[Value] | None
    variables: Iterator[str]

    def render(self, scalar: Scalar) -> SqlText:
        match scalar:
            case Column(index=index):
                return atom(f"c{index}" if self.names is None else self.names[index])
            case Literal(value=value, type=type):
                return self._literal(value, type)
            case Parameter(number=number, type=type):
                if self.dialect.parameter is None:
                    raise FeatureNotSupported(f"parameter ${number}{self.dialect.where} is not supported")
                return atom(self._parameter(number, type, self.dialect.parameter))
            case Call():
                return self._call(scalar)
            case And(arguments=arguments):
                return self._format("({})", *arguments, between=" AND ")
            case Or(arguments=arguments):
                return self._format("({})", *arguments, between=" OR ")
            case Not(argument=IsNull(argument=argument)):
                return self._format("({} IS NOT NULL)", argument)
            case Not(argument=argument):
                return self._format("(NOT {})", argument)
            case IsNull(argument=argument):
                return self._format("({} IS NULL)", argument)
            case IsDistinct(left=left, right=right):
                return self._format(self.dialect.distinct, left, right, between=self.dialect.distinct_sign)
            case InList(argument=argument, items=items):
                value, listed = self.render(argument), self._items(items)
                return SqlText(checked_length(f"({value.text} IN {listed.text})"), value.size + listed.size)
            case Case(branches=branches, otherwise=otherwise):
                return self._case(branches, otherwise)
            case Coalesce(arguments=arguments):
                return self._coalesce(arguments)
            case GreatestLeast(which=which, arguments=arguments):
                return self._format(f"{which}({{}})", *arguments)
            case _:
                assert_never(scalar)

    def _parameter(self, number: int, type: Type, parameter: str) -> str:
        """Returns a parameter. The values of dates and timestamps are numbers."""
        if type.leaves.isdisjoint(self.dialect.dates):
            return parameter.format(number, self.dialect.type(type))
        return self._of_numbers(f"${number}", type)

    def _of_numbers(self, value: str, type: Type, depth: int = 0) -> str:
        """Returns the value of a parameter with its numbers as dates and timestamps. `depth`: of the arrays around it."""
        if type.is_array:
            elements, shape = (f"struct_extract({value}, '{part}')" for part in ("elements", "dimensions"))
            variable = f"moment{depth or ''}"
            inner = self._of_numbers(variable, type.element, depth + 1)
            moments = f"list_transform({elements if type.multidimensional else value}, lambda {variable}: {inner})"
            return self.dialect.dimensions.format(moments, shape) if type.multidimensional else moments
        if type.name == "record":
            fields = (self._of_numbers(f"struct_extract({value}, 'f{n}')", f.type, depth) for n, f in enumerate(type.fields, 1))
            members = (self.dialect.member.format(n, field) for n, field in enumerate(fields, 1))
            return (
                f"CASE WHEN {value} IS NOT NULL THEN CAST({self.dialect.row.format(', '.join(members))} AS {self.dialect.type(type)}) END"
            )
        moment = self.dialect.dates.get(type.name)
        return f"CAST({value} AS {self.dialect.type(type)})" if moment is None else moment.format(value)

    def _literal(self, value: Value, type: Type) -> SqlText:
        parameter = self.dialect.parameter
        if self.constants is not None and parameter is not None and isinstance(value, str | bytes) and len(value) > LONG_MIN:
            self.constants.append(value)
            return atom(parameter.format(CONSTANTS + len(self.constants), self.dialect.type(type)))
        return atom(literal(value, type, self.dialect))

    def _call(self, call: Call) -> SqlText:
        dialect = self.dialect
        template = dialect.template(call.function)
        if not call.function.takes_general and _takes_numerics(call.function) and any(a.type.general for a in call.arguments):
            template = ""
        if not template:
            raise FeatureNotSupported(f"{call.function}{dialect.where} is not supported")
        catching = replace(dialect, template=lambda f: dialect.catchable(dialect.template(f)))
        renderer = replace(self, dialect=catching) if call.function.name == "try" else self
        arguments = list(map(renderer.render, call.arguments))
        texts, lets, size = share_arguments(template, arguments, uses(template, len(arguments), dialect.macros), self.variables)
        types = [a.type for a in call.arguments]
        pattern = Patterns(call, texts, dialect)
        text = fill_template(template, texts, types, call.type, dialect.type(call.type), {"now": self.now}, pattern)
        column = next((part for part in walk(call) if isinstance(part, Column)), None) if call.function.name == "try" else None
        if column is not None:
            text = dialect.tried.format(column=self.render(column).text, text=text)
        for variable, value in lets.items():
            text = dialect.let.format(value=value, variable=variable, text=text)
        return SqlText(checked_length(text), own_size(template, dialect.macros) + size)

    def _coalesce(self, arguments: Sequence[Scalar]) -> SqlText:
        texts = [
            t if isinstance(a, Column | Literal) else self._copied(t, a.type)
            for a, t in zip(arguments, map(self.render, arguments), strict=True)
        ]
        return SqlText(checked_length(f"coalesce({', '.join(t.text for t in texts)})"), sum(t.size + 2 for t in texts) + len("coalesce()"))

    def _copied(self, text: SqlText, type: Type) -> SqlText:
        copy = self.dialect.copied.get(self.dialect.type(type))
        return text if copy is None else SqlText(checked_length(copy.format(text.text)), text.size + len(copy))

    def _format(self, format: str, *parts: Scalar, between: str = ", ") -> SqlText:
        """Fills a format that has one place for all parts. Each part is evaluated once."""
        texts = list(map(self.render, parts))
        return SqlText(checked_length(format.format(between.join(t.text for t in texts))), len(format) + sum(t.size + 2 for t in texts))

    def _case(self, branches: Sequence[tuple[Scalar, Scalar]], otherwise: Scalar) -> SqlText:
        parts = [(self.render(condition), self.render(value)) for condition, value in branches]
        last = self.render(otherwise)
        whens = " ".join(f"WHEN {c.text} THEN {t.text}" for c, t in parts)
        size = sum(c.size + t.size + len("WHEN  THEN ") for c, t in parts) + last.size
        return SqlText(checked_length(f"(CASE {whens} ELSE {last.text} END)"), size)

    def _items(self, items: Sequence[Scalar]) -> SqlText:
        """Returns the items of IN. In DuckDB, integers need no cast, because the other operand has their type."""
        if not self.dialect.plain_lists:
            return self._format("({})", *items)
        texts = [
            str(i.value) if isinstance(i, Literal) and i.type.name in INTEGERS and isinstance(i.value, int) else self.render(i).text
            for i in items
        ]
        return atom(checked_length(f"({', '.join(texts)})"))


def _takes_numerics(function: Function) -> bool:
    return not function.unified and any(name in ("numeric", "numeric[]") for name in function.arguments)


def literal(value: Value, type: Type, dialect: Dialect) -> str:
    """Returns the SQL of a literal in the stored form of its type."""
    cast = f"CAST({{}} AS {dialect.type(type)})"
    if value is None:
        return cast.format("NULL")
    if type.multidimensional:
        assert isinstance(value, tuple)
        numbers = literal(value[1], INT4.array(), dialect)
        return cast.format(dialect.dimensions.format(literal(value[0], type.array(), dialect), numbers))
    if type.is_array:
        assert isinstance(value, tuple)
        return cast.format(dialect.array.format(", ".join(literal(v, type.element, dialect) for v in value)))
    match type.name, value:
        case "bool", bool():
            return "true" if value else "false"
        case "int4", int() if dialect.plain_integers and value > -(2**31):
            return f"({value})" if value < 0 else str(value)
        case (("int2" | "int4" | "int8" | "oid" | "time" | "timetz" | "money" | "enum"), int()):
            return cast.format(f"'{value}'")
        case (("float4" | "float8"), float()):
            shown = "NaN" if math.isnan(value) else "Infinity" if value == math.inf else "-Infinity" if value == -math.inf else repr(value)
            return cast.format(f"'{shown}'")
        case "numeric", Decimal() if type.general:
            struct = sortable.stored(value)
            return f"tg_text_to_general('{value:f}')" if struct["x"] else dialect.general.format(struct["u"], struct["s"])
        case "numeric", Decimal():
            return cast.format(f"'{value:f}'")
        case "record", tuple():
            members = (
                dialect.member.format(n, literal(v, f.type, dialect)) for n, (v, f) in enumerate(zip(value, type.fields, strict=True), 1)
            )
            return cast.format(dialect.row.format(", ".join(members)))
        case _, bytes():
            return dialect.bytes.format(value.hex())
        case "timestamp", int():
            return dialect.timestamp.format(dialect.timestamp_text(value))
        case "timestamptz", int():
            return dialect.timestamptz.format(dialect.timestamp_text(value))
        case "date", int():
            return dialect.date.format(dialect.date_text(value))
        case "interval", (int() as months, int() as days, int() as micros):
            return dialect.interval.format(months, days, micros)
        case _, str():
            return dialect.quoted(value)
    raise FeatureNotSupported(f"a literal of type {type} is not supported")
