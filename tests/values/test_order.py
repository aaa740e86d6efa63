"""Values compare as in PostgreSQL, which has ranked the texts of the golden files."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tailgate.lake.errors import TailgateError
from tailgate.lake.types import Type
from tailgate.values.codec.codec import Value
from tailgate.values.registry import order_key, read_text
from tests.values.golden import TYPES, load


@pytest.mark.parametrize("name", TYPES)
def test_order(name: str) -> None:
    type = TYPES[name]
    ranked = [(golden.rank, value) for golden in load(name) if golden.output is not None and (value := read(golden.text, type)) is not None]
    ranked.sort(key=lambda pair: pair[0])
    for (rank, value), (next_rank, next_value) in pairwise(ranked):
        key, next_key = order_key(value, type), order_key(next_value, type)
        assert (key < next_key) is (rank < next_rank), (value, next_value)
        assert (key == next_key) is (rank == next_rank), (value, next_value)
    assert len(ranked) >= 10


def read(text: str, type: Type) -> Value:
    """Returns the value of a text, or None if Tailgate refuses it."""
    try:
        return read_text(text, type)
    except TailgateError:
        return None
