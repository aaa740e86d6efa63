"""Converts arrays to arrays of JSON values."""

from __future__ import annotations

from tailgate.lake.types import TEXT, Type
from tailgate.sql.binder.types.coercion import cast
from tailgate.sql.binder.types.overloads import function
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.functions.general import templates as general_templates
from tailgate.sql.functions.multidimensional import templates as multidimensional
from tailgate.sql.plan import Call, Scalar


def json_elements(array: Scalar, target: Type, parameters: Parameters, at: int | None) -> Scalar:
    """Returns an array as an array of json or jsonb with the same dimensions, with to_json or to_jsonb of each element."""
    if array.type.enum is not None:
        array = cast(array, TEXT.array(multidimensional=array.type.multidimensional), parameters, at)
    row = function(f"to_{target.name}", (array.type.element,), at)
    if array.type.general:
        row = general_templates.general(row) or row
    result = target.array(multidimensional=array.type.multidimensional)
    return Call(multidimensional.each(row, array.type, target.name), (array,), result, at)
