"""General numerics in Delta tables are exact texts, and are read as the same stored forms."""

import random
from decimal import Decimal

import pyarrow as pa

from tailgate.lake import sortable
from tailgate.lake.tables.delta_forms import delta_schema, from_delta, to_delta
from tailgate.lake.types import GENERAL_ARROW

EDGES = [
    "0.000001",
    "0.0000001",
    "-0.00000012",
    "0.0000000",
    "0",
    "0.00",
    "-0.5",
    "1.10",
    "-12345.670",
    "NaN",
    "Infinity",
    "-Infinity",
    "0." + "0" * 45 + "1",
    "9" * 38,
    "9" * 39,
    "0.00",
    "1" + "0" * 60,
]


def _texts(random_: random.Random, count: int) -> list[str | None]:
    out: list[str | None] = []
    for _ in range(count):
        digits = "".join(random_.choices("0123456789", k=random_.choice([1, 5, 20, 37, 38, 39, 60])))
        scale = random_.choice([0, 0, 2, len(digits), len(digits) + 3])
        number = Decimal(int(digits)).scaleb(-scale, context=sortable.EXACT)
        out.append(random_.choice([None, *3 * [format(number, "f")], "-" + format(number, "f") if number else "0"]))
    return out


def test_texts_are_exact_and_return_the_same_form(seed: int) -> None:
    random_ = random.Random(seed)
    texts = [*EDGES, None, *_texts(random_, 2_000)]
    column = pa.array([None if t is None else sortable.stored(Decimal(t)) for t in texts], GENERAL_ARROW)
    rows = pa.table({"k": pa.array(range(len(texts))), "a": pa.chunked_array([column.slice(0, 7), column.slice(7)])})
    delta = to_delta(rows)
    assert delta.schema == delta_schema(rows.schema)
    assert delta["a"].to_pylist() == texts
    assert from_delta(delta, rows.schema).equals(rows)


def test_a_column_of_few_rows_or_none() -> None:
    for texts in ([], [None], ["1.5"], ["NaN", None]):
        rows = pa.table({"a": pa.array([None if t is None else sortable.stored(Decimal(t)) for t in texts], GENERAL_ARROW)})
        assert to_delta(rows)["a"].to_pylist() == texts
        assert from_delta(to_delta(rows), rows.schema).equals(rows)


def test_arrays_are_lists_of_texts(seed: int) -> None:
    """The engine's rows are from Spark, which names the elements of lists `element`; Arrow's name is `item`."""
    random_ = random.Random(seed)
    texts = [*EDGES, None, *_texts(random_, 500)]
    lists = [None, [], [None], *(random_.choice([None, random_.choices(texts, k=random_.randrange(5))]) for _ in range(500))]
    for name in ("item", "element"):
        stored = [None if v is None else [None if t is None else sortable.stored(Decimal(t)) for t in v] for v in lists]
        column = pa.array(stored, pa.list_(pa.field(name, GENERAL_ARROW)))
        rows = pa.table({"a": pa.chunked_array([column.slice(0, 7), column.slice(7, 0), column.slice(7)])})
        delta = to_delta(rows)
        assert delta.schema == delta_schema(rows.schema)
        assert delta["a"].to_pylist() == lists
        assert from_delta(delta, rows.schema).equals(rows)
