"""The values of an endpoint's parameters, from the path, the query string and the JSON object of a body.

    :id of the path, ?name=…    texts ──► the input function of the type
    {"name": …}                 strings as texts, numbers, true, false, null, arrays; any value for json and jsonb

Source: RFC 8259, "The JavaScript Object Notation (JSON) Data Interchange Format".
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

from tailgate.gateway.http.routes import check_names
from tailgate.lake.catalog import Endpoint
from tailgate.lake.errors import CharacterNotInRepertoire, InvalidParameterValue, InvalidTextRepresentation, TailgateError
from tailgate.lake.types import Type
from tailgate.values.registry import read_text
from tailgate.values.stored import stored

NUMBERS = ("int2", "int4", "int8", "oid", "numeric", "float4", "float8")
Json: TypeAlias = Any  # null, a bool, a string, a _Number, a list or a dict


class _Number(str):
    """A number as typed: all digits remain."""

    __slots__ = ()


def members(body: bytes) -> Mapping[str, Json]:
    """Returns the members of the JSON object in a body; those of an empty body are none. Raises 22P02, 22021, 22023."""
    if not body:
        return {}
    try:
        value = json.loads(body.decode(), parse_int=_Number, parse_float=_Number, parse_constant=_no_constant, object_pairs_hook=_unique)
    except UnicodeError:  # in the bytes, or half of a surrogate pair in a name
        raise CharacterNotInRepertoire('invalid byte sequence for encoding "UTF8"') from None
    except (ValueError, RecursionError):
        raise InvalidTextRepresentation("the body is not valid JSON") from None
    if not isinstance(value, dict):
        raise InvalidTextRepresentation("the body must be a JSON object")
    return value


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Returns an object. Raises 22023 if a name occurs twice, and UnicodeEncodeError if it is not Unicode."""
    value = dict(pairs)
    "".join(value).encode()
    if len(value) < len(pairs):
        raise InvalidParameterValue("a name of a JSON object occurs more than once")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(name)


def with_body(endpoint: Endpoint, path: Mapping[str, str], fields: Mapping[str, str], body: bytes) -> list[object]:
    """Returns the values of the parameters of a request with a body. Raises the errors of `members` and `values`."""
    return values(endpoint, path, fields, members(body))


def values(
    endpoint: Endpoint, path: Mapping[str, str], fields: Mapping[str, str], body: Mapping[str, Json], others: Collection[str] = ()
) -> list[object]:
    """Returns the values of the parameters, in order. `others`: further names that `fields` may have.

    Raises 42P02 for an unknown name, and 22023 or the type's error for a wrong value.
    """
    names = [p.name for p in endpoint.parameters if p.name not in path]
    check_names(fields, [*names, *others])
    check_names(body, names)
    stored_values: list[object] = []
    for parameter in endpoint.parameters:
        name, type = parameter.name, parameter.type
        if name in body:
            if name in fields:
                raise InvalidParameterValue("a parameter occurs more than once")
            stored_values.append(_of_json(body[name], name, type))
            continue
        text = path.get(name, fields.get(name))
        if text is None:
            if name not in endpoint.defaults:
                raise InvalidParameterValue(f'parameter "{name}" is missing')
            text = endpoint.defaults[name]
        stored_values.append(None if text is None else _of_text(text, name, type))
    return stored_values


def _of_text(text: str, name: str, type: Type) -> object:
    try:
        if "\0" in text:
            raise InvalidParameterValue("a value contains the character with code zero")
        text.encode()
        return stored(read_text(text, type), type)
    except UnicodeEncodeError:  # half of a surrogate pair
        raise CharacterNotInRepertoire('invalid character for encoding "UTF8"', detail=_detail(name)) from None
    except TailgateError as error:
        error.detail = _detail(name)
        raise


def _of_json(value: Json, name: str, type: Type) -> object:
    """Returns the value of a JSON value."""
    if value is None:
        return None
    try:
        text = _text(value, type)
    except RecursionError:
        raise InvalidParameterValue("a value is nested too deeply", detail=_detail(name)) from None
    if text is None:
        raise InvalidParameterValue(f"a value of type {type} is required", detail=_detail(name))
    return _of_text(text, name, type)


def _text(value: Json, type: Type) -> str | None:
    """Returns the text of a JSON value for the input function of a type, or None if the type has no such values."""
    if type.is_array and isinstance(value, list):
        texts = [_element(item, type) for item in value]
        return None if None in texts else "{" + ",".join(filter(None, texts)) + "}"
    if not type.is_array and type.name in ("json", "jsonb"):
        return _written(value)
    if isinstance(value, _Number):
        return str(value) if type.name in NUMBERS and not type.is_array else None
    if isinstance(value, bool):
        return str(value).lower() if type.name == "bool" and not type.is_array else None
    return value if isinstance(value, str) else None


def _element(value: Json, array: Type) -> str | None:
    """Returns the text of an array's element, in quotes unless it is NULL or an array."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return _text(value, array)
    text = _text(value, array.element)
    return None if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _written(value: Json) -> str:
    """Returns the JSON text of a value, with its numbers as typed."""
    match value:
        case _Number():
            return str(value)
        case dict():
            return "{" + ", ".join(f"{json.dumps(k, ensure_ascii=False)}: {_written(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_written, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _detail(name: str) -> str:
    return f'It is the value of parameter "{name}".'
