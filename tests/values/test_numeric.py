"""Arithmetic of general numerics: values, display scales and errors of PostgreSQL 15."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial, reduce
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from tailgate.lake.errors import FeatureNotSupported, TailgateError
from tailgate.lake.types import GENERAL, Type
from tailgate.values.codec.style import DEFAULT
from tailgate.values.numbers import numerics
from tailgate.values.numbers.general import column_text
from tailgate.values.numeric import arithmetic, moments, powers
from tailgate.values.registry import binary_column, read_binary, read_text, text_column
from tailgate.values.stored import stored

SPECIAL = ("NaN", "Infinity", "-Infinity")
EDGES = tuple("0 0.00 1 1.0 -1 -1.00 2 10 0.5 -0.5 9999 10000 0.0001 99.99 0.99999999 1.0000001 3".split())
ONE_ARGUMENT: dict[str, Callable[[Decimal], Any]] = {
    "-a": arithmetic.negated,
    "abs(a)": arithmetic.absolute,
    "sign(a)": arithmetic.sign,
    "ceil(a)": arithmetic.ceiling,
    "floor(a)": arithmetic.floor,
    "round(a)": lambda a: arithmetic.round_to(a, 0),
    "trunc(a)": lambda a: arithmetic.truncate(a, 0),
    "scale(a)": arithmetic.display_scale,
    "min_scale(a)": arithmetic.min_scale,
    "trim_scale(a)": arithmetic.trim_scale,
    "sqrt(a)": powers.square_root,
    "exp(a)": powers.exponential,
    "ln(a)": powers.natural_logarithm,
    "log(a)": powers.decimal_logarithm,
}
TWO_ARGUMENTS: dict[str, Callable[[Decimal, Decimal], Any]] = {
    "a + b": arithmetic.add,
    "a - b": arithmetic.subtract,
    "a * b": arithmetic.multiply,
    "a / b": arithmetic.divide,
    "a % b": arithmetic.remainder,
    "div(a, b)": arithmetic.quotient,
    "gcd(a, b)": arithmetic.greatest_common_divisor,
    "lcm(a, b)": arithmetic.least_common_multiple,
    "log(a, b)": powers.logarithm,
    "power(a, b)": powers.power,
}


def total(values: Sequence[Decimal]) -> Decimal | None:
    """Returns the sum with the largest display scale, None of no values."""
    return reduce(arithmetic.add, values) if values else None


def average(values: Sequence[Decimal]) -> Decimal | None:
    return arithmetic.divide(reduce(arithmetic.add, values), Decimal(len(values))) if values else None


AGGREGATES: dict[str, Callable[[list[Decimal]], Any]] = {
    "sum": total,
    "avg": average,
    **{name: partial(moments.variance, name) for name in ("var_pop", "var_samp", "stddev_pop", "stddev_samp")},
}  # fmt: skip
TRY = """
    CREATE FUNCTION pg_temp.try(expression text, VARIADIC arguments text[]) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE result text;
    BEGIN
        EXECUTE 'SELECT (' || expression || ')::text FROM (SELECT $1[1]::numeric AS a, $1[2]::numeric AS b, $1[3]::int AS n) AS t'
            INTO result USING arguments;
        RETURN result;
    EXCEPTION WHEN OTHERS THEN
        RETURN SQLSTATE || ' ' || SQLERRM;
    END $$
"""


def random_number(source: random.Random) -> str:
    """Returns a number of any size: most of them are short, some have hundreds of digits."""
    kind = source.random()
    if kind < 0.03:
        return source.choice(SPECIAL)
    if kind < 0.2:
        return source.choice(EDGES)
    limit = 3 if kind < 0.5 else 12 if kind < 0.8 else 45 if kind < 0.97 else 600
    whole, part = source.randint(0, limit), source.randint(0, limit)
    text = "".join(source.choice("0123456789") if source.random() < 0.8 else "0" for _ in range(whole)).lstrip("0") or "0"
    if part:
        text += "." + "0" * source.choice((0, 0, part // 2)) + "".join(source.choices("0012345678999", k=part - part // 2))
    return text if Decimal(text) == 0 else source.choice(("", "", "-")) + text


@pytest.fixture(scope="module")
def server(postgres: str) -> Any:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(TRY)
        yield connection


def expected(server: Any, text: str, rows: Sequence[tuple[str, ...]]) -> list[str | None]:
    values = ", ".join("(" + ", ".join(["%s"] * len(rows[0])) + ")" for _ in rows)
    names = ", ".join("abn"[i] for i in range(len(rows[0])))
    query = f"SELECT pg_temp.try('{text.replace('%', '%%')}', {names}) FROM (VALUES {values}) AS v({names})"
    return [value for (value,) in server.execute(query, [item for row in rows for item in row]).fetchall()]


def result(function: Callable[..., Any], *arguments: Any) -> str | None:
    try:
        value = function(*arguments)
    except TailgateError as error:
        return f"{error.sqlstate} {error.message}"
    return None if value is None else format(value, "f") if isinstance(value, Decimal) else str(value)


@pytest.mark.parametrize("text", ONE_ARGUMENT)
def test_functions_of_one_number(text: str, server: Any, seed: int) -> None:
    source = random.Random(f"{seed}{text}")
    rows = [(n,) for n in (*SPECIAL, *EDGES)] + [(random_number(source),) for _ in range(200)]
    results = [result(ONE_ARGUMENT[text], Decimal(a)) for (a,) in rows]
    wrong = [(row, *pair) for row, *pair in zip(rows, results, expected(server, text, rows), strict=True) if pair[0] != pair[1]]
    assert not wrong, (len(wrong), wrong[:3])


@pytest.mark.parametrize("text", TWO_ARGUMENTS)
def test_functions_of_two_numbers(text: str, server: Any, seed: int) -> None:
    source = random.Random(f"{seed}{text}")
    rows = [(a, b) for a in (*SPECIAL, *EDGES) for b in (*SPECIAL, *EDGES)]
    rows += [(random_number(source), random_number(source)) for _ in range(300)]
    results = [result(TWO_ARGUMENTS[text], Decimal(a), Decimal(b)) for a, b in rows]
    wrong = [(row, *pair) for row, *pair in zip(rows, results, expected(server, text, rows), strict=True) if pair[0] != pair[1]]
    assert not wrong, (len(wrong), wrong[:3])


@pytest.mark.parametrize(("text", "function"), [("round(a, n)", arithmetic.round_to), ("trunc(a, n)", arithmetic.truncate)])
def test_rounding(text: str, function: Callable[[Decimal, int], Decimal], server: Any, seed: int) -> None:
    source = random.Random(f"{seed}{text}")
    rows = [(random_number(source), "0", str(source.choice((source.randint(-6, 9), source.randint(-3000, 3000))))) for _ in range(200)]
    results = [result(function, Decimal(a), int(n)) for a, _, n in rows]
    wrong = [(row, *pair) for row, *pair in zip(rows, results, expected(server, text, rows), strict=True) if pair[0] != pair[1]]
    assert not wrong, (len(wrong), wrong[:3])


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregates(name: str, server: Any, seed: int) -> None:
    source = random.Random(f"{seed}{name}")
    wrong = []
    for _ in range(60):
        values = [random_number(source) for _ in range(source.randint(0, 6))]
        ((value,),) = server.execute(f"SELECT {name}(v)::text FROM unnest(%s::numeric[]) AS v", (values,)).fetchall()
        if (ours := result(AGGREGATES[name], list(map(Decimal, values)))) != value:
            wrong.append((values, ours, value))
    assert not wrong, (len(wrong), wrong[:3])


def test_text_and_binary_forms(server: Any, seed: int) -> None:
    source = random.Random(f"{seed}forms")
    texts = [*SPECIAL, *EDGES, *(random_number(source) for _ in range(300))]
    query = "SELECT v::numeric::text, numeric_send(v::numeric) FROM unnest(%s::text[]) WITH ORDINALITY AS u(v, n) ORDER BY n"
    rows = server.execute(query, (texts,)).fetchall()
    values = [read_text(text, GENERAL) for text in texts]
    column = pa.array([stored(v, GENERAL) for v in values], GENERAL.arrow)
    assert text_column(column, GENERAL).to_pylist() == [text.encode() for text, _ in rows]
    assert binary_column(column, GENERAL).to_pylist() == [data for _, data in rows]
    for value, (_, data) in zip(values, rows, strict=True):
        assert str(read_binary(data, GENERAL)) == str(value)


def test_columns_of_few_display_scales_are_written_by_arrow() -> None:
    texts = ["1.50", "-0.05", "0.00", None, "12345678901234567890", "-7", "0.000001", "3.000000"]
    column = pa.array([None if t is None else stored(Decimal(t), GENERAL) for t in texts], GENERAL.arrow)
    assert column_text(column, GENERAL, DEFAULT).to_pylist() == [None if t is None else t.encode() for t in texts]
    assert text_column(column.slice(2, 4), GENERAL).to_pylist() == [b"0.00", None, b"12345678901234567890", b"-7"]


@pytest.mark.parametrize("digits", [(4, 2), (4, 4), (10, 0)])
def test_a_precision_holds_no_infinity(digits: tuple[int, int], postgres: str) -> None:
    type = Type("numeric", digits)
    for text in ("Infinity", "-Infinity"):
        with psycopg.connect(postgres) as server, pytest.raises(psycopg.errors.NumericValueOutOfRange) as theirs:
            server.execute(f"SELECT '{text}'::numeric({digits[0]}, {digits[1]})".encode())
        with pytest.raises(TailgateError) as ours:
            numerics.fitted(Decimal(text), type)
        diagnostic, error = theirs.value.diag, ours.value
        assert (error.sqlstate, error.message, error.detail) == (
            diagnostic.sqlstate,
            diagnostic.message_primary,
            diagnostic.message_detail,
        )
    with pytest.raises(FeatureNotSupported):
        numerics.fitted(Decimal("NaN"), type)
