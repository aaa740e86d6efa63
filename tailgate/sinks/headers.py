"""Conversion of a jsonb column to the headers of a message.

    {"name": "value", …}                              one header per member, in the order of jsonb
    [{"key": "name", "value": "value"}, …]            the form of INCLUDE HEADERS: keeps order and repeated names

A value that is not a string is sent as its JSON text, and null as a header without a value. NULL
means no headers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

from tailgate.lake.errors import InvalidParameterValue

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class EventMetadata:
    """The headers and the time of a sink's events.

    The headers are the `constant` ones, then those in a `column` of the row, if there is one. `timestamp`: the column with the time.
    Columns are given by their positions. `joins`: whether a row is not older than the record that caused it, also if the row of a join
    that remains is.
    """

    column: int | None = None
    constant: Headers = ()
    timestamp: int | None = None
    joins: bool = False


NO_METADATA = EventMetadata()


def headers_of(text: str | None) -> Headers:
    """Returns the headers. Raises 22023 if the value has neither form.

    >>> headers_of('{"a": "x", "b": 1, "c": null}')
    (('a', b'x'), ('b', b'1'), ('c', None))
    """
    headers = None if text is None else json.loads(text)
    if headers is None:
        return ()
    if isinstance(headers, dict):
        return tuple((name, _value(value)) for name, value in headers.items())
    if isinstance(headers, list) and all(isinstance(h, dict) and isinstance(h.get("key"), str) for h in headers):
        return tuple((h["key"], _value(h.get("value"))) for h in headers)
    raise InvalidParameterValue(
        f"headers must be a JSON object, or an array of objects with key and value: {text}", hint="Change the expression of the column."
    )


def _value(value: Any) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode()
