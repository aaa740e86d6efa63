"""A column of texts has the same values as its texts read one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from tailgate.lake.errors import TailgateError
from tailgate.lake.tables.moments import numbers
from tailgate.lake.types import Type
from tailgate.values.registry import codec, read_column, read_text
from tailgate.values.stored import stored
from tests.values.golden import TYPES, load

COMMON = {  # spellings that Arrow reads
    "bool": ["t", "f"],
    "int2": ["-32768", "0", "-0", "007"],
    "int4": ["-2147483648", "12"],
    "int8": ["-12345678901234567", "999999999999999999"],
    "float8": ["-0", "1.5", "1e10", "12345678901234567", "2.5E-07", "-7.1e+22"],
    "numeric": ["1", "-0.5", "12345678.12345678"],
    "numeric_5_2": ["-123.45", "-0", "1.5", "999"],
    "numeric_3_0": ["-123", "7"],
    "text": ["", " x ", "größe"],
    "varchar": ["a"],
    "varchar_3": ["äöü", ""],
    "name": ["a" * 63],
    "date": ["2024-02-28", "1000-12-01"],
    "timestamp": ["2024-02-28 23:59:59.999999", "1000-12-01T00:00:00", "2024-01-01 00:00:00.5"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000"],
}


def column(texts: list[str | None]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(texts, pa.string())])


def one_by_one(texts: list[str | None], type: Type) -> pa.Array:
    return pa.array([None if t is None else stored(read_text(t, type), type) for t in texts], type.arrow)


@pytest.mark.parametrize("name", COMMON)
def test_common_spellings(name: str) -> None:
    type, texts = TYPES[name], [*COMMON[name], None]
    at_once = codec(type).read_column(column(texts), type)
    assert at_once is not None, "Arrow does not read the column"
    assert list(map(str, at_once.to_pylist())) == list(map(str, one_by_one(texts, type).to_pylist()))


@pytest.mark.parametrize("name", TYPES)
def test_every_spelling(name: str) -> None:
    type = TYPES[name]
    for text in [golden.text for golden in load(name)]:
        assert outcome(partial(read_column, column([text]), type)) == outcome(partial(one_by_one, [text], type)), text


def outcome(read: Callable[[], pa.Array | pa.ChunkedArray]) -> tuple[object, ...]:
    """Returns the value's text, or the error."""
    try:
        return (str(numbers(read()).to_pylist()),)
    except TailgateError as error:
        return error.sqlstate, error.message


def test_an_error_has_its_row() -> None:
    with pytest.raises(TailgateError) as raised:
        read_column(column(["1", None, "x", "y"]), Type("int4"))
    assert (raised.value.row, raised.value.message) == (2, 'invalid input syntax for type integer: "x"')
