"""Functions of the dimensions of arrays (`values.composites.dimensions`). Functions of their elements are SQL."""

from __future__ import annotations

from tailgate.sql.compute.registry import udf
from tailgate.values.composites import dimensions
from tailgate.values.composites.arrays import nested_text, parsed, quote, text_of


@udf("int4[]", to="text")
def dimensions_text(shape: list[int]) -> str | None:
    """Returns array_dims(): NULL for an array without elements."""
    return dimensions.shown(shape) or None


@udf("int4[]", "int4[]", to="int4")
def dimensions_place(shape: list[int], subscripts: list[int | None]) -> int | None:
    return dimensions.place(shape, subscripts)


@udf("int4[]", "int4[]", "int4[]", to="int4[]")
def dimensions_sliced(shape: list[int], lows: list[int], highs: list[int]) -> list[int]:
    return list(dimensions.sliced(shape, lows, highs)[0])


@udf("int4[]", "int4[]", "int4[]", to="int4[]")
def dimensions_selected(shape: list[int], lows: list[int], highs: list[int]) -> list[int]:
    """Returns the numbers of the elements of a slice."""
    return dimensions.sliced(shape, lows, highs)[1]


@udf("int4[]", "int4[]", "int4[]", to="int4[]")
def dimensions_assigned(shape: list[int], lows: list[int], highs: list[int]) -> list[int]:
    return list(dimensions.assigned(shape, lows, highs)[0])


@udf("int4[]", "int4[]", "int4[]", to="int4[]")
def dimensions_sources(shape: list[int], lows: list[int], highs: list[int]) -> list[int]:
    """Returns the source of each element of an assignment."""
    return dimensions.assigned(shape, lows, highs)[1]


@udf("int4[]", "int4[]", to="int4[]")
def dimensions_concatenated(a: list[int], b: list[int]) -> list[int]:
    return list(dimensions.concatenated(a, b))


@udf("int4[][]", to="int4[]")
def dimensions_nested(arrays: list[list[int] | None]) -> list[int]:
    """Returns the dimensions of ARRAY[…] of arrays."""
    return list(dimensions.nested(arrays))


@udf("int4[][]", to="int4[]")
def dimensions_accumulated(arrays: list[list[int] | None]) -> list[int]:
    """Returns the dimensions of array_agg() of arrays."""
    return list(dimensions.accumulated(arrays))


@udf("int4[]", to="int4[]")
def dimensions_filled(sizes: list[int | None]) -> list[int]:
    return list(dimensions.filled(sizes, None))


@udf("int4[]", "int4[]", to="int4[]")
def dimensions_filled_from(sizes: list[int | None], lows: list[int | None]) -> list[int]:
    return list(dimensions.filled(sizes, lows))


# --- texts ---------------------------------------------------------------------------------------


@udf("text[]", "int4[]", to="text")
def dimensions_to_text(items: list[str | None], shape: list[int]) -> str:
    """Returns the text of an array, from the texts of its elements."""
    return text_of([b"NULL" if item is None else quote(item.encode()) for item in items], shape).decode()


@udf("text", to="text[]")
def array_text_elements(text: str) -> list[str | None]:
    return parsed(text)[0]


@udf("text", to="int4[]")
def array_text_dimensions(text: str) -> list[int]:
    return list(parsed(text)[1])


@udf("json[]", "int4[]", to="json")
def dimensions_to_json(items: list[str | None], shape: list[int]) -> str:
    """Returns an array as JSON, from its elements as JSON."""
    return nested_text([b"null" if item is None else item.encode() for item in items], shape, b"[", b"]").decode()
