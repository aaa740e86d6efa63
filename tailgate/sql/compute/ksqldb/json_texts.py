"""ksqlDB's functions of texts that contain JSON.

Results have no blanks, and numbers with a fraction as Java writes a double.

Source: ksqlDB 0.29, documentation, "Scalar functions", sections "Strings" and "Collections".
"""

from __future__ import annotations

import json
import re
from typing import Any

from tailgate.lake.errors import InvalidParameterValue, InvalidTextRepresentation, StatementTooComplex
from tailgate.sql.compute.ksqldb.texts import ksqldb_double_text
from tailgate.sql.compute.registry import udf
from tailgate.values.strings.jsonb import dump

BLANK = re.compile(r'("(?:[^"\\]|\\.)*")|([:,]) ')  # a string, or what a blank follows
STEP = re.compile(r"\.(?P<name>[^.\[\]*]+)|\[(?P<quoted>'[^']*'|\"[^\"]*\")\]|\[(?P<index>[0-9]{1,9})\]", re.ASCII)


def _refused(text: str) -> Any:
    raise ValueError(text)


def _parsed(text: str) -> Any:
    """Returns the value of a JSON text. Raises 22P02 or 54001."""
    try:
        return json.loads(text, parse_constant=_refused)
    except RecursionError:
        raise StatementTooComplex("stack depth limit exceeded") from None
    except ValueError:
        raise InvalidTextRepresentation("invalid JSON format") from None


def compact(value: Any) -> str:
    """Returns the text of a JSON value without blanks."""
    match value:
        case dict():
            return "{" + ",".join(f"{compact(k)}:{compact(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ",".join(map(compact, value)) + "]"
        case float():
            return ksqldb_double_text(value)
        case str():
            return dump(value)
    return json.dumps(value)


def _text(value: Any) -> str | None:
    """Returns a part of a JSON value as a text: a string without quotes, NULL for null."""
    return None if value is None else value if isinstance(value, str) else compact(value)


@udf("text", "text", to="text")
def ksqldb_json_field(text: str, path: str) -> str | None:
    """Returns the value at a path such as $.a[0]['b'], or NULL. Raises 22023 for a path with another form."""
    value = _parsed(text)
    at = 1 if path.startswith("$") else len(path)
    while at < len(path) or not path.startswith("$"):
        step = STEP.match(path, at)
        if step is None:
            raise InvalidParameterValue(f"invalid JSON path: {path}")
        at = step.end()
        if step["index"] is not None:
            index = int(step["index"])
            value = value[index] if isinstance(value, list) and index < len(value) else None
        else:
            name = step["quoted"][1:-1] if step["name"] is None else step["name"]
            value = value.get(name) if isinstance(value, dict) else None
    return _text(value)


@udf("text", to="bool")
def ksqldb_is_json(text: str) -> bool:
    try:
        _parsed(text)
    except InvalidTextRepresentation:
        return False
    return True


@udf("text", to="int4")
def ksqldb_json_array_length(text: str) -> int | None:
    value = _parsed(text)
    return len(value) if isinstance(value, list) else None


@udf("text", "text", to="text")
def ksqldb_json_concat(left: str, right: str) -> str:
    """Returns the union of two objects, or the elements of both values; a value that is not an array is one element."""
    first, second = _parsed(left), _parsed(right)
    if isinstance(first, dict) and isinstance(second, dict):
        return compact(first | second)
    return compact([*(first if isinstance(first, list) else [first]), *(second if isinstance(second, list) else [second])])


@udf("text", to="jsonb")
def ksqldb_json_keys(text: str) -> str | None:
    value = _parsed(text)
    return dump(list(value)) if isinstance(value, dict) else None


@udf("text", to="jsonb")
def ksqldb_json_items(text: str) -> str | None:
    """Returns the elements of a JSON array as texts of JSON."""
    value = _parsed(text)
    return dump([compact(item) for item in value]) if isinstance(value, list) else None


@udf("text", to="jsonb")
def ksqldb_json_records(text: str) -> str | None:
    """Returns the members of a JSON object as a map of texts of JSON."""
    value = _parsed(text)
    return dump({key: compact(item) for key, item in value.items()}) if isinstance(value, dict) else None


@udf("jsonb", to="text")
def ksqldb_json_text(value: str) -> str:
    """Returns the text of a value without the blanks of jsonb."""
    return BLANK.sub(r"\1\2", value)
