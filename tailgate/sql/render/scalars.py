"""Renders a scalar as SQL of Spark or DuckDB.

Syntax that both engines share is in `spelled`, the differences are in a `Dialect` for each engine.
How to write a function is in its row of the function catalogue. Columns are c0, c1, … unless the
caller passes `names`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import count

from typing_extensions import assert_never

from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import Type
from tailgate.sql.compute.regexp import likes, patterns
from tailgate.sql.functions.arithmetic import INTEGERS
from tailgate.sql.functions.arrays import EACH
from tailgate.sql.functions.entry import Function
from tailgate.sql.plan import (
    And,
    Call,
    Case,
    Coalesce,
    Column,
    Extreme,
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
from tailgate.sql.render.duckdb_macros import MACROS
from tailgate.sql.render.shared_arguments import NO_MACROS, Macros, Written, atom, bound, checked, own_size, uses
from tailgate.sql.render.templates import filled

LONG_MIN = 1000  # characters; longer literals become parameters of DuckDB, which need no parsing and do not count as SQL
CONSTANTS = 100_000  # these parameters have numbers above this; parameters of statements have numbers up to 65535


@dataclass(frozen=True)
class Dialect:
    """The syntax of one engine where it differs from the other. Texts with {} are format strings.

    `parameter`: None if the engine has no parameters. `let`: binds `value` to `variable` in `text`.
    `macros`: the macros that templates may call.
    """

    template: Callable[[Function], str]
    type: Callable[[Type], str]
    quoted: Callable[[str], str]
    where: str  # completes error messages
    parameter: str | None
    distinct: str
    distinct_sign: str
    array: str
    bytes: str
    date: str
    timestamp: str
    timestamptz: str
    interval: str
    plain_integers: bool  # whether digits without a cast have type int4
    plain_lists: bool  # whether integers in IN (…) take the type of the left operand
    let: str
    macros: Macros


def spelled(
    scalar: Scalar, dialect: Dialect, names: Sequence[str] | None = None, now: str = "", constants: list[Value] | None = None
) -> str:
    """Returns the SQL of a scalar.

    `now`: SQL for the time of the statement. `constants`: long literals are appended to it and become
    parameters; without it, they are written into the SQL. Raises 0A000 if the engine cannot express
    the scalar, and 54001 if the SQL is too long.
    """
    variables = (f"tg_v{number}" for number in count())

    def call(s: Call) -> Written:
        template = dialect.template(s.function)
        if not template:
            raise FeatureNotSupported(f"{s.function}{dialect.where} is not supported")
        texts, lets, size = bound(list(map(written, s.arguments)), uses(template, len(s.arguments), dialect.macros), variables)
        types = [a.type for a in s.arguments]
        text = filled(template, texts, types, s.type, dialect.type(s.type), now, pattern=_patterns(s, texts, dialect))
        for variable, value in lets.items():
            text = dialect.let.format(value=value, variable=variable, text=text)
        return Written(checked(text), own_size(template, dialect.macros) + size)

    def made(format: str, *parts: Scalar, between: str = ", ") -> Written:
        """Fills a format that has one place for all parts. Each part is evaluated once."""
        below = list(map(written, parts))
        return Written(checked(format.format(between.join(b.text for b in below))), len(format) + sum(b.size + 2 for b in below))

    def written(s: Scalar) -> Written:
        match s:
            case Column(index=index):
                return atom(f"c{index}" if names is None else names[index])
            case Literal(value=value, type=type):
                if constants is not None and dialect.parameter is not None and isinstance(value, str | bytes) and len(value) > LONG_MIN:
                    constants.append(value)
                    return atom(dialect.parameter.format(CONSTANTS + len(constants), dialect.type(type)))
                return atom(literal(value, type, dialect))
            case Parameter(number=number, type=type):
                if dialect.parameter is None:
                    raise FeatureNotSupported(f"parameter ${number}{dialect.where} is not supported")
                return atom(dialect.parameter.format(number, dialect.type(type)))
            case Call():
                return call(s)
            case And(arguments=arguments):
                return made("({})", *arguments, between=" AND ")
            case Or(arguments=arguments):
                return made("({})", *arguments, between=" OR ")
            case Not(argument=IsNull(argument=argument)):
                return made("({} IS NOT NULL)", argument)
            case Not(argument=argument):
                return made("(NOT {})", argument)
            case IsNull(argument=argument):
                return made("({} IS NULL)", argument)
            case IsDistinct(left=left, right=right):
                return made(dialect.distinct, left, right, between=dialect.distinct_sign)
            case InList(argument=argument, items=items):
                found, listed = written(argument), made("({})", *items) if not dialect.plain_lists else _listed(items, written)
                return Written(checked(f"({found.text} IN {listed.text})"), found.size + listed.size)
            case Case(branches=branches, otherwise=otherwise):
                parts = [(written(c), written(t)) for c, t in branches]
                last = written(otherwise)
                whens = " ".join(f"WHEN {c.text} THEN {t.text}" for c, t in parts)
                size = sum(c.size + t.size + len("WHEN  THEN ") for c, t in parts) + last.size
                return Written(checked(f"(CASE {whens} ELSE {last.text} END)"), size)
            case Coalesce(arguments=arguments):
                return made("coalesce({})", *arguments)
            case Extreme(which=which, arguments=arguments):
                return made(f"{which}({{}})", *arguments)
            case _:
                assert_never(s)

    return written(scalar).text


def _listed(items: Sequence[Scalar], written: Callable[[Scalar], Written]) -> Written:
    """Returns the items of IN. Integers need no cast, because the other operand has their type."""
    texts = [
        str(i.value) if isinstance(i, Literal) and i.type.name in INTEGERS and isinstance(i.value, int) else written(i).text for i in items
    ]
    return atom(checked(f"({', '.join(texts)})"))


def _patterns(call: Call, texts: list[str], dialect: Dialect) -> Callable[[str, int], str]:
    """Returns a function (kind, index) → SQL for the regular expression that is argument `index`.

    The flags are the last argument, or follow from the operator. The kinds are:

    - `test`: the pattern, to test whether a text matches
    - `search`: the pattern, to find where a text matches
    - `global`: 0 if the flags ask for all matches, else 1
    - `like`: DuckDB's complete test of argument 0. It uses DuckDB's own regular expressions if they
      support the pattern, because their time is linear in the length of the text.
    - `fits`: the complete test with LIKE

    For ANY (array) and ALL (array) the pattern is the element, as in `functions.arrays.quantified`.
    """

    sign = call.function.name.removesuffix(" ANY").removesuffix(" ALL")

    def shown(index: int) -> str:
        return EACH if call.arguments[index].type.is_array else texts[index]

    def value(index: int) -> str:
        argument = call.arguments[index]
        if not isinstance(argument, Literal) or not isinstance(argument.value, str):
            raise FeatureNotSupported(f"a regular expression or its flags that are no literal{dialect.where} are not supported")
        return argument.value

    def spelled(kind: str, index: int) -> str:
        if kind == "like":
            return like(index)
        if kind == "fits":
            return fits(index)
        flags = value(len(call.arguments) - 1) if len(call.arguments) > index + 1 and call.function.flagged else ""
        flags += "i" if sign.endswith("~*") else ""
        plain, everywhere = patterns.options(flags, global_allowed=call.function.name in ("regexp_replace", "regexp_matches"))
        if kind == "global":
            return "0" if everywhere else "1"
        return dialect.quoted(patterns.for_java(value(index), plain, kind == "search"))

    def like(index: int) -> str:
        given = call.arguments[index:]
        implied = "i" if sign.endswith("~*") else ""
        if all(isinstance(a, Literal) and isinstance(a.value, str) for a in given):
            flags = value(index + 1) if call.function.flagged else implied
            if (made := patterns.for_duckdb(value(index), patterns.options(flags)[0])) is not None:
                return f"regexp_matches({texts[0]}, {dialect.quoted(made)})"
        return f"tg_regexp_like({texts[0]}, {shown(index)}, {texts[-1] if call.function.flagged else dialect.quoted(implied)})"

    def fits(index: int) -> str:
        """Returns the test whether argument 0 matches the pattern of LIKE or ILIKE."""
        pattern, folds = call.arguments[index], sign.endswith("*")
        known = pattern.value if isinstance(pattern, Literal) and isinstance(pattern.value, str) else None
        if dialect.parameter is None:
            if known is not None and likes.is_simple(known):
                return f"{texts[0]} {'ILIKE' if folds else 'LIKE'} tg_like_pattern({shown(index)})"
            sides = [f"lower({shown(i)})" if folds else shown(i) for i in (0, index)]
            return f"tg_like({', '.join(sides)})"
        if known is not None and not folds:
            return likes.for_duckdb(texts[0], known)
        if known is not None and len(known.lower()) == len(known):
            return likes.for_duckdb(f"lower({texts[0]})", known.lower())
        sides = [f"lower({shown(i)})" if folds else shown(i) for i in (0, index)]
        return f"tg_like_any({', '.join(sides)})"

    return spelled


def literal(value: Value, type: Type, dialect: Dialect) -> str:
    """Returns the SQL of a literal in the stored form of its type."""
    cast = f"CAST({{}} AS {dialect.type(type)})"
    if value is None:
        return cast.format("NULL")
    if type.is_array:
        assert isinstance(value, tuple)
        return cast.format(dialect.array.format(", ".join(literal(v, type.element, dialect) for v in value)))
    match type.name, value:
        case "bool", bool():
            return "true" if value else "false"
        case "int4", int() if dialect.plain_integers and value > -(2**31):
            return f"({value})" if value < 0 else str(value)
        case (("int2" | "int4" | "int8" | "oid" | "time"), int()):
            return cast.format(f"'{value}'")
        case (("float4" | "float8"), float()):
            shown = "NaN" if math.isnan(value) else "Infinity" if value == math.inf else "-Infinity" if value == -math.inf else repr(value)
            return cast.format(f"'{shown}'")
        case "numeric", Decimal():
            return cast.format(f"'{value:f}'")
        case "bytea", bytes():
            return dialect.bytes.format(value.hex())
        case "timestamp", datetime():
            return dialect.timestamp.format(value.isoformat(sep=" "))
        case "timestamptz", datetime():
            return dialect.timestamptz.format(value.replace(tzinfo=None).isoformat(sep=" "))
        case "date", date():
            return dialect.date.format(value.isoformat())
        case "interval", (int() as months, int() as days, int() as micros):
            return dialect.interval.format(months, days, micros)
        case _, str():
            return dialect.quoted(value)
    raise FeatureNotSupported(f"a literal of type {type} is not supported")


def _backslashed(text: str) -> str:
    """Returns a string literal with backslashes escaped, because Spark interprets them."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SPARK = Dialect(
    template=lambda f: f.spark,
    type=lambda t: t.spark,
    quoted=_backslashed,
    where=" in a view",
    parameter=None,
    distinct="(NOT ({}))",
    distinct_sign=" <=> ",
    array="array({})",
    bytes="X'{}'",
    date="DATE'{}'",
    timestamp="TIMESTAMP_NTZ'{}'",
    timestamptz="TIMESTAMP_LTZ'{}+00:00'",
    interval="named_struct('months', CAST({} AS INT), 'days', CAST({} AS INT), 'micros', CAST({} AS BIGINT))",
    plain_integers=True,
    plain_lists=False,
    let="element_at(transform(array({value}), {variable} -> {text}), 1)",
    macros=NO_MACROS,
)
DUCKDB = Dialect(
    template=lambda f: f.duckdb,
    type=lambda t: t.duckdb,
    quoted=lambda text: "'" + text.replace("'", "''") + "'",
    where="",
    parameter="CAST(${} AS {})",
    distinct="({})",
    distinct_sign=" IS DISTINCT FROM ",
    array="[{}]",
    bytes="from_hex('{}')",
    date="DATE '{}'",
    timestamp="TIMESTAMP '{}'",
    timestamptz="TIMESTAMPTZ '{}+00'",
    interval="{{'months': {}::INTEGER, 'days': {}::INTEGER, 'micros': {}::BIGINT}}",
    plain_integers=False,  # DuckDB would make them smallint next to a smallint
    plain_lists=True,
    let="list_transform([{value}], lambda {variable}: {text})[1]",
    macros=Macros(MACROS),
)
