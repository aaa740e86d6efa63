"""DuckDB's SQL for general numerics gives the results of `values.numeric`, which tests.values.test_numeric compares with PostgreSQL."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tailgate.lake import sortable
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import GENERAL
from tailgate.sql.compute.numeric.general_numerics import general_key
from tailgate.sql.functions.general.templates import DIVISION
from tailgate.sql.render.duckdb_functions import install
from tailgate.values.numeric import arithmetic
from tailgate.values.numeric.scales import WIDE
from tests.values.test_numeric import EDGES, SPECIAL, random_number, total

ONE: dict[str, Callable[[Decimal], Any]] = {
    "tg_general_negate_any(a)": arithmetic.negated,
    "tg_general_abs_any(a)": arithmetic.absolute,
    "tg_general_sign_any(a)": arithmetic.sign,
    "tg_general_ceil_any(a)": arithmetic.ceiling,
    "tg_general_floor_any(a)": arithmetic.floor,
    "tg_general_scale_any(a)": arithmetic.display_scale,
    "tg_general_key_any(a)": general_key,
    "tg_general_to_text_any(a)": lambda a: format(a, "f"),
    "tg_text_to_general(tg_general_to_text_any(a))": lambda a: a,
}
TWO: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "tg_general_add_any(a, b)": arithmetic.add,
    "tg_general_subtract_any(a, b)": arithmetic.subtract,
    "tg_general_multiply_any(a, b)": arithmetic.multiply,
    "tg_general_remainder_any(a, b)": arithmetic.remainder,
    DIVISION % ("a", "b"): arithmetic.divide,
}
ROUNDING: dict[str, Callable[[Decimal, int], Decimal]] = {"round": arithmetic.round_to, "trunc": arithmetic.truncate}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as database:
        install(database)
        yield database


def table(rows: list[tuple[Decimal | None, Decimal | None, int]]) -> pa.Table:
    columns = [pa.array([None if row[i] is None else sortable.stored(row[i]) for row in rows], GENERAL.arrow) for i in range(2)]
    return pa.table([*columns, pa.array([row[2] for row in rows], pa.int32())], ["a", "b", "n"])


def random_rows(source: random.Random) -> list[tuple[Decimal | None, Decimal | None, int]]:
    """Returns pairs of numbers of all sizes, of one scale or of several, and a number of digits."""
    texts = [(a, b) for a in (*SPECIAL, *EDGES) for b in (*SPECIAL, *EDGES)]
    texts += [(random_number(source), random_number(source)) for _ in range(500)]
    limits = (9, 99, 10**17, 10**18 - 1, 10**18, 10**18 + 1, 10**19, 10**37, 10**38 - 1)
    pairs = [(Decimal(a), Decimal(b)) for a, b in texts]
    for _ in range(1500):
        a, b = (Decimal(source.choice((-1, 1)) * source.randint(0, source.choice(limits))) for _ in range(2))
        pairs.append((a.scaleb(-source.randint(0, 22), WIDE), b.scaleb(-source.randint(0, 22), WIDE)))
    pairs = [(a or a.copy_abs(), b or b.copy_abs()) for a, b in pairs]
    return [(a, b, source.randint(-3, 25)) for a, b in pairs] + [(None, Decimal(1), 1)]


def difference(connection: duckdb.DuckDBPyConnection, sql: str, rows: list[Any], expected: list[Any]) -> list[Any]:
    connection.register("numbers", table(rows))
    values = connection.execute(f"SELECT {sql} FROM numbers").arrow().read_all().column(0).to_pylist()
    return [(row, value, right) for row, value, right in zip(rows, values, expected, strict=True) if value != right][:3]


def form(value: Any) -> Any:
    return sortable.stored(value) if isinstance(value, Decimal) else value


def calculated(function: Callable[..., Any], *arguments: Any) -> Any:
    """Returns the result in stored form, or a `TailgateError`."""
    if None in arguments:
        return None
    try:
        return form(function(*arguments))
    except TailgateError as error:
        return error


@pytest.mark.parametrize("sql", ONE)
def test_functions_of_one_number(sql: str, connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    rows = random_rows(random.Random(seed))
    assert not difference(connection, sql, rows, [calculated(ONE[sql], a) for a, _, _ in rows])


@pytest.mark.parametrize("sql", TWO)
def test_functions_of_two_numbers(sql: str, connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    results = [(row, calculated(TWO[sql], *row[:2])) for row in random_rows(random.Random(seed))]
    valid = [(row, value) for row, value in results if not isinstance(value, TailgateError)]
    assert len(valid) > len(results) * 0.8
    assert not difference(connection, sql, *map(list, zip(*valid, strict=True)))


@pytest.mark.parametrize("name", ROUNDING)
def test_rounding(name: str, connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    rows = random_rows(random.Random(seed))
    assert not difference(connection, f"tg_general_{name}_any(a, n)", rows, [calculated(ROUNDING[name], a, n) for a, _, n in rows])


def test_keys_are_ordered_like_the_values(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    rows = [row for row in random_rows(random.Random(seed)) if row[0] is not None]
    ordered = sorted((row[0] for row in rows if row[0] is not None), key=lambda a: sortable.encode(a)[:-2])
    connection.register("numbers", table(rows))
    values = connection.execute("SELECT a FROM numbers ORDER BY tg_general_key_any(a)").fetchall()
    forms = [sortable.encode(sortable.loaded(**value))[:-2] for (value,) in values]
    assert forms == [sortable.encode(a)[:-2] for a in ordered]
    ((count,),) = connection.execute("SELECT count(DISTINCT tg_general_key_any(a)) FROM numbers").fetchall()
    assert count == len(set(forms))


def test_sums(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    source = random.Random(seed)
    rows = random_rows(source)
    groups = [(n, [row[0] for row in rows if row[2] == n and row[0] is not None]) for n in {row[2] for row in rows}]
    connection.register("numbers", table(rows))
    query = "SELECT tg_general_sum(sum(tg_general_term(a)), max(tg_general_term_scale(a)), list(a) FILTER (tg_general_is_other(a)))"
    for n, values in groups:
        ((value,),) = connection.execute(f"{query} FROM numbers WHERE n = {n} AND a.u < 1000000 AND a.s < 5").fetchall()
        small = [v for v in values if form(v)["u"] is not None and form(v)["u"] < 1000000 and form(v)["s"] < 5]
        assert value == form(total(small))
        ((value,),) = connection.execute(f"{query} FROM numbers WHERE n = {n}").fetchall()
        assert value == form(total(values))
