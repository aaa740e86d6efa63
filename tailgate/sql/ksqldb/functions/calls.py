"""Calls of functions: the expression of PostgreSQL's dialect from the template of a function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.lake.keywords import quoted_text
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import ColumnReference, FunctionCall
from tailgate.sql.ksqldb.functions.catalogue import ROWS, find
from tailgate.sql.ksqldb.functions.entry import Function, wanted_type
from tailgate.sql.ksqldb.functions.tables import COUNT_OF, ROWS_OF
from tailgate.sql.ksqldb.functions.times import UNITS
from tailgate.sql.ksqldb.functions.volatile import volatile_call
from tailgate.sql.ksqldb.typed.values import Typed, coerced, element_json, of_json, to_json

PLACE = re.compile(r"\{(j|json|hex|type)?([0-9]+|[*+])\}")
WITH_UNIT = frozenset(row.name.partition(":")[0] for row in ROWS if ":" in row.name)


def with_unit(call: FunctionCall) -> FunctionCall:
    """Returns a call whose first argument is a unit of time, as a call of the function of this unit. Raises 22023."""
    if call.name not in WITH_UNIT or not call.arguments or not isinstance(call.arguments[0], ColumnReference):
        return call
    word = call.arguments[0].column.lower()
    unit = word if word in UNITS else word + "s"
    name = f"{call.name}:{unit}"
    if all(row.name != name for row in ROWS):
        raise InvalidParameterValue(f"{call.name.upper()} has no unit {word.upper()}", position=call.arguments[0].position)
    return replace(call, name=name, arguments=call.arguments[1:])


def call(name: str, arguments: Sequence[Typed], position: int, order: Sequence[str] = (), of_rows: Sequence[str] = ()) -> Typed:
    """Returns the value of a call. `order`: the position of a record for aggregates, empty for a table; the place of a
    record for volatile functions. `of_rows`: the order of the rows of a table.

    Raises 42883, or 0A000 for a function whose value is not determined by its arguments, or that needs an order that does not exist.
    """
    function = find(name, [a.type for a in arguments], position)
    if function.volatile:
        return volatile_call(name, order, position)
    if function.of_literal and arguments[1].constant:
        function = replace(function, template=function.of_literal)
    if function.aggregate:
        _check_constants(function, arguments, position)
    values = _coerced(function, arguments)
    result = function.result_of([v.type for v in values])
    text = _filled(_ordered(function, order, of_rows, position), values).replace("{type}", types.postgresql(result))
    may_fail = function.may_fail or any(v.may_fail for v in values)
    if function.json:
        return of_json(text, result, may_fail=may_fail)
    if result.name == "decimal" and not function.aggregate:
        text = f"CAST({text} AS {types.postgresql(result)})"
    return Typed(text, result, may_fail)


def row_count(name: str, arguments: Sequence[Typed], position: int) -> str:
    """Returns the text of the number of rows of a call of a table function."""
    function = find(name, [a.type for a in arguments], position)
    return _filled(function.template.replace(ROWS_OF, COUNT_OF), _coerced(function, arguments))


def _check_constants(function: Function, arguments: Sequence[Typed], position: int) -> None:
    """Raises 22023 for a number of values, or whether NULL is ignored, without a literal, or for a number below 1."""
    name = function.name.upper()
    for number, (kind, argument) in enumerate(zip(function.arguments, arguments, strict=True), 1):
        if number == 1 or kind not in (types.INT, types.BOOLEAN):
            continue
        if argument.constant is None:
            raise InvalidParameterValue(f"Parameter {number} passed to function {name} must be a literal constant", position=position)
        if isinstance(argument.constant, int) and kind == types.INT and argument.constant < 1:
            raise InvalidParameterValue(f"Parameter {number} passed to function {name} must be 1 or greater", position=position)


def _ordered(function: Function, order: Sequence[str], of_rows: Sequence[str], position: int) -> str:
    """Returns the template with the order of the records. For rows of a table, COLLECT_SET and TOPK sort the values."""
    template = function.template
    if not order and function.name == "collect_list":
        return template.replace("{order}", ", ".join((*of_rows, "{0}")))
    if not order and "{order}" in template and function.name.startswith(("collect", "topk")):
        return template.replace("{order}", "{0}")
    if not order and ("{order}" in template or "{latest}" in template):
        raise FeatureNotSupported(
            f"The aggregation function(s) ({function.name.upper()}) cannot be applied to a table source, only to a stream source.",
            hint="Use a stream.",
            position=position,
        )
    return template.replace("{order}", ", ".join(order)).replace("{latest}", ", ".join(f"{column} DESC" for column in order))


def _coerced(function: Function, arguments: Sequence[Typed]) -> list[Typed]:
    """Returns the arguments as values of the types that the function accepts."""
    argument_types = [a.type for a in arguments]
    kinds = function.kinds(len(arguments))
    assert kinds is not None
    targets = [types.common(argument_types) if function.result == "common" else wanted_type(kind, argument_types) for kind in kinds]
    return [a if type is None else coerced(a, type) for a, type in zip(arguments, targets, strict=True)]


def _filled(template: str, values: Sequence[Typed]) -> str:
    """Returns a template with its arguments."""

    def text_of(match: re.Match[str]) -> str:
        form, place = match[1], match[2]
        chosen = values if place == "*" else values[1:] if place == "+" else [values[int(place)]]
        match form:
            case "j":
                return ", ".join(map(element_json, chosen))
            case "json":
                return ", ".join(map(to_json, chosen))
            case "type":
                return quoted_text(types.descriptor(chosen[0].type))
            case "hex":
                return ", ".join(f"encode({v.text}, 'hex')" for v in chosen)
        return ", ".join(v.text for v in chosen)

    return PLACE.sub(text_of, template)
