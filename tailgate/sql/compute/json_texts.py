"""Functions of type json, which is its text as it was written.

Parts of a value are slices of its text. If an object has several members with one key, the last one
counts.

Source: PostgreSQL 15, section "JSON Functions and Operators"; src/backend/utils/adt/{json,jsonfuncs}.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.compute.jsonb.construction import members_of, members_of_pairs
from tailgate.sql.compute.registry import udf
from tailgate.values.numbers.integers import strtoint
from tailgate.values.strings.json_texts import DECODER, check_strings, checked, parse, without_nulls
from tailgate.values.strings.jsonb import dump

_ARRAY_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},]')
BLANKS = re.compile(r"[ \t\n\r]*")

udf("text", to="json", name="text_to_json")(checked)


# --- parts ---------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A member of an object or an element of an array, which has no key: a range of the text."""

    key: str
    start: int
    end: int


def _skip_blanks(text: str, at: int) -> int:
    match = BLANKS.match(text, at)
    assert match is not None
    return match.end()


def _root(text: str) -> Part:
    """Returns the whole value. Raises 22P05 or 22P02 if a string of it cannot be text."""
    if "\\u" in text:
        check_strings(parse(text))
    return Part("", _skip_blanks(text, 0), len(text.rstrip(" \t\n\r")))


def _parts(text: str, start: int) -> Iterator[Part]:
    """Returns the parts of the object or array at an index."""
    has_keys, key = text[start] == "{", ""
    at = _skip_blanks(text, start + 1)
    while text[at] not in "]}":
        if has_keys:
            key, at = DECODER.raw_decode(text, at)
            at = _skip_blanks(text, _skip_blanks(text, at) + 1)  # after the colon
        _, end = DECODER.raw_decode(text, at)
        yield Part(key, at, end)
        at = _skip_blanks(text, end)
        if text[at] == ",":
            at = _skip_blanks(text, at + 1)


def _member(text: str, key: str) -> Part | None:
    start = _root(text).start
    members = [part for part in _parts(text, start) if part.key == key] if text[start] == "{" else []
    return members[-1] if members else None


def _element(text: str, start: int, index: int) -> Part | None:
    elements = list(_parts(text, start)) if text[start] == "[" else []
    return elements[index] if -len(elements) <= index < len(elements) else None


def _part_at_path(text: str, part: Part, path: list[str]) -> Part | None:
    if not path:
        return part
    step, rest = path[0], path[1:]
    if text[part.start] == "[" and (index := strtoint(step)) is not None:
        element = _element(text, part.start, index)
        return _part_at_path(text, element, rest) if element else None
    if text[part.start] != "{":
        return None
    values = [_part_at_path(text, member, rest) for member in _parts(text, part.start) if member.key == step]
    return next((p for p in reversed(values) if p is not None), None)


def _path(text: str, path: list[str | None]) -> Part | None:
    steps = [step for step in path if step is not None]
    return _part_at_path(text, _root(text), steps) if len(steps) == len(path) else None


def _json(text: str, part: Part | None) -> str | None:
    return None if part is None else text[part.start : part.end]


def _blanks_before(text: str, path: list[str | None]) -> str:
    """Returns the blanks before a scalar if the path is empty; PostgreSQL preserves them."""
    start = _skip_blanks(text, 0)
    return "" if path or text[start] in "{[" else text[:start]


def _text(text: str, part: Part | None) -> str | None:
    """Returns a string without quotes, None for JSON's null, and the JSON text of other values."""
    if part is None or text[part.start] == "n":
        return None
    if text[part.start] == '"':
        string: str = DECODER.raw_decode(text, part.start)[0]
        return string
    return text[part.start : part.end]


@udf("json", "text", to="json")
def json_get(text: str, key: str) -> str | None:
    return _json(text, _member(text, key))


@udf("json", "text", to="text")
def json_get_text(text: str, key: str) -> str | None:
    return _text(text, _member(text, key))


@udf("json", "int4", to="json")
def json_element(text: str, index: int) -> str | None:
    return _json(text, _element(text, _root(text).start, index))


@udf("json", "int4", to="text")
def json_element_text(text: str, index: int) -> str | None:
    return _text(text, _element(text, _root(text).start, index))


@udf("json", "text[]", to="json")
def json_path(text: str, path: list[str | None]) -> str | None:
    part = _json(text, _path(text, path))
    return None if part is None else _blanks_before(text, path) + part


@udf("json", "text[]", to="text")
def json_path_text(text: str, path: list[str | None]) -> str | None:
    part = _path(text, path)
    value = _text(text, part)
    return value if part is None or value is None or text[part.start] == '"' else _blanks_before(text, path) + value


# --- properties ----------------------------------------------------------------------------------

TYPE_NAMES = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}


@udf("json", to="text")
def json_typeof(text: str) -> str:
    return TYPE_NAMES.get(text[_skip_blanks(text, 0)], "number")


@udf("json", to="int4")
def json_array_length(text: str) -> int:
    start = _skip_blanks(text, 0)
    if text[start] == "[":
        return sum(1 for _ in _parts(text, start))
    raise InvalidParameterValue(f"cannot get array length of a {'non-array' if text[start] == '{' else 'scalar'}")


@udf("json", to="json")
def json_strip_nulls(text: str) -> str:
    tree = parse(text)
    check_strings(tree)
    return without_nulls(tree)


# --- sets of rows --------------------------------------------------------------------------------


def _elements(text: str, function: str, *, strings: bool) -> Iterator[Part]:
    start = _skip_blanks(text, 0)
    if text[start] != "[":
        raise InvalidParameterValue(f"cannot call {function} on a {'non-array' if text[start] == '{' else 'scalar'}")
    return _parts(text, _root(text).start if strings else start)


def _members(text: str) -> Iterator[Part]:
    start = _skip_blanks(text, 0)
    if text[start] != "{":
        raise InvalidParameterValue("cannot deconstruct " + ("an array as an object" if text[start] == "[" else "a scalar"))
    return _parts(text, _root(text).start)


@udf("json", to="json[]")
def json_elements(text: str) -> list[str | None]:
    return [_json(text, p) for p in _elements(text, "json_array_elements", strings=False)]


@udf("json", to="text[]")
def json_elements_text(text: str) -> list[str | None]:
    return [_text(text, p) for p in _elements(text, "json_array_elements_text", strings=True)]


@udf("json", to="text[]")
def json_keys(text: str) -> list[str]:
    start = _skip_blanks(text, 0)
    if text[start] != "{":
        raise InvalidParameterValue(f"cannot call json_object_keys on {'an array' if text[start] == '[' else 'a scalar'}")
    return [part.key for part in _parts(text, _root(text).start)]


@udf("json", to="pairs")
def json_each(text: str) -> list[dict[str, str | None]]:
    return [{"key": p.key, "value": _json(text, p)} for p in _members(text)]


@udf("json", to="pairs")
def json_each_text(text: str) -> list[dict[str, str | None]]:
    return [{"key": p.key, "value": _text(text, p)} for p in _members(text)]


# --- construction --------------------------------------------------------------------------------


def _object(members: list[tuple[str, str | None]]) -> str:
    """Returns an object of keys and JSON texts."""
    return "{" + ", ".join(f"{dump(key)} : {'null' if value is None else value}" for key, value in members) + "}"


@udf("json[]", to="json")
def json_build_array(items: list[str | None]) -> str:
    return "[" + ", ".join("null" if i is None else i for i in items) + "]"


@udf("json[]", to="json")
def array_to_json(items: list[str | None]) -> str:
    return "[" + ",".join("null" if i is None else i for i in items) + "]"


@udf("json", to="json")
def array_lines(text: str) -> str:
    """Returns an array with each element but the first on its own line, for array_to_json(array, true)."""
    parts, depth, start = list[str](), 0, 0
    for token in _ARRAY_TOKEN.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case "," if depth == 1:
                parts.append(text[start : token.end()])
                start = token.end()
    return "\n ".join((*parts, text[start:]))


@udf("text[]", "json[]", to="json")
def json_build_object(keys: list[str | None], values: list[str | None]) -> str:
    for i, key in enumerate(keys):
        if key is None:
            raise InvalidParameterValue(f"argument {2 * i + 1} cannot be null", hint="Object keys should be text.")
    return _object([(key, value) for key, value in zip(keys, values, strict=True) if key is not None])


@udf("text[]", "json[]", "bool", to="json")
def row_to_json(keys: list[str], values: list[str | None], pretty: bool) -> str:
    """Returns a row as an object. With `pretty`, each member but the first begins a line."""
    members = (f"{dump(key)}:{'null' if value is None else value}" for key, value in zip(keys, values, strict=True))
    return "{" + (",\n " if pretty else ",").join(members) + "}"


@udf("text[]", to="json")
def json_from_pairs(items: list[str | None]) -> str:
    """Computes json_object(text[])."""
    return _object_of_texts(members_of_pairs(items))


@udf("text[]", "text[]", to="json")
def json_object_of(keys: list[str | None], values: list[str | None]) -> str:
    """Computes json_object(text[], text[])."""
    return _object_of_texts(members_of(keys, values))


def _object_of_texts(members: list[tuple[str, str | None]]) -> str:
    return _object([(key, None if value is None else dump(value)) for key, value in members])


@udf("text[][]", to="json")
def json_object_agg(members: list[list[str | None]]) -> str:
    """Returns an object of (key, JSON text) pairs. Raises 22023."""
    parts = []
    for key, value in members:
        if key is None:
            raise InvalidParameterValue("field name must not be null")
        parts.append(f"{dump(key)} : {'null' if value is None else value}")
    return "{ " + ", ".join(parts) + " }"
