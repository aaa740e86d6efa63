"""The sortable form of numerics has the order of the numbers, and returns each number with its display scale."""

from __future__ import annotations

import random
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa

from tailgate.lake import sortable
from tailgate.lake.types import GENERAL, NUMERIC, Field, field_from_json, field_to_json
from tailgate.values.numbers import numerics

EDGES = [
    "0", "0.00", "1", "1.0", "1.00", "-1", "-1.00", "99", "100", "-99", "-100", "0.1", "0.01", "0.001", "-0.001",
    "1.0001", "-1.0001", "12345.67", "9" * 38, "-" + "9" * 39, "1e-80", "1e-81", "1e-82", "-1e-81", "1e163", "1e164", "1e165",
    "-1e164", "1e131071", "-1e131071", "1e-16383", "-1e-16383",
]  # fmt: skip


def _number(text: str) -> Decimal:
    return numerics.exact(text)


def _random(random_: random.Random) -> Decimal:
    length = random_.choice((1, 2, 3, 5, 17, 38, 39, 200))
    scale = random_.choice((0, 1, 2, 3, 16, 38, 180))
    digits = "".join(random_.choice("0019") for _ in range(length))
    return _number(("-" if random_.random() < 0.5 else "") + digits).scaleb(-scale, context=sortable.EXACT)


def _values(seed: int) -> list[Decimal]:
    random_ = random.Random(seed)
    return [_number(text) for text in EDGES] + [_random(random_) for _ in range(3000)]


def test_a_number_keeps_its_value_and_display_scale(seed: int) -> None:
    for value in _values(seed):
        for read in (sortable.decode(sortable.encode(value)), sortable.loaded(**sortable.stored(value))):
            assert read.as_tuple() == value.as_tuple()


def test_bytes_have_the_order_of_the_numbers(seed: int) -> None:
    ordered = sorted(_values(seed), key=sortable.encode)
    for a, b in pairwise(ordered):
        assert a <= b, (a, b)
        assert (a == b) is (sortable.encode(a)[:-2] == sortable.encode(b)[:-2]), (a, b)


def test_infinities_and_nan_enclose_all_numbers(seed: int) -> None:
    low, high, nan = (sortable.encode(Decimal(text)) for text in ("-Infinity", "Infinity", "NaN"))
    assert low < min(map(sortable.encode, _values(seed)))
    assert max(map(sortable.encode, _values(seed))) < high < nan
    assert str(sortable.loaded(**sortable.stored(Decimal("NaN")))) == "NaN"


def test_arrow_and_the_catalog_know_the_type() -> None:
    column = pa.array([sortable.stored(_number("1.10")), None, sortable.stored(_number("9" * 39))], GENERAL.arrow)
    assert [column[0]["u"].as_py(), column[0]["s"].as_py(), column[1].as_py(), column[2]["u"].as_py()] == [110, 2, None, None]
    for type in (GENERAL, NUMERIC, GENERAL.array()):
        assert field_from_json(field_to_json(Field("x", type))).type == type
    assert GENERAL.typmod == -1
