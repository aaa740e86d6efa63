"""Text input and output of every type: the golden files, which PostgreSQL 15 recorded."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pytest

from tailgate.lake.errors import TailgateError
from tailgate.lake.types import Type
from tailgate.values.codec.codec import Value
from tailgate.values.raw import values as raw_values
from tailgate.values.registry import read_text, text_writer
from tailgate.values.stored import stored
from tests.values.golden import TYPES, Golden, load, recorded
from tests.values.outcomes import shown, unsupported


@pytest.mark.parametrize("name", TYPES)
def test_file_is_of_postgresql(name: str, postgres: str) -> None:
    entries = load(name)
    with psycopg.connect(postgres, autocommit=True) as connection:
        assert recorded(connection, TYPES[name], [g.text for g in entries]) == entries
    assert len(entries) >= 50


@pytest.mark.parametrize("name", TYPES)
def test_text(name: str) -> None:
    mismatches = [line for g in load(name) if (line := difference(TYPES[name], g))]
    assert not mismatches, "\n".join([f"{len(mismatches)} differences", *mismatches])


def difference(type: Type, golden: Golden) -> str:
    try:
        output = written(read_text(golden.text, type), type)
    except TailgateError as error:
        if golden.output is not None and unsupported(type, golden.output) and error.sqlstate in ("22008", "22003", "0A000"):
            return ""
        if (error.sqlstate, error.message) == (golden.sqlstate, golden.message):
            return ""
        return f"{golden.text!r}: {error.sqlstate} {error.message}, in PostgreSQL {golden}"
    expected = None if golden.output is None else shown(type, golden.output.encode())
    return "" if shown(type, output) == expected else f"{golden.text!r}: {output!r}, in PostgreSQL {golden}"


def written(value: Value, type: Type) -> bytes:
    """Returns a value's text, through its stored form in Arrow."""
    (raw,) = raw_values(pa.array([stored(value, type)], type.arrow), type)
    return text_writer(type)(raw)
