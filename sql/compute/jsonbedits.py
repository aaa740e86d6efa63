"""jsonb changed: joined, cut, and set at a path.

Source: PostgreSQL 15, src/backend/utils/adt/jsonfuncs.c.
"""

from __future__ import annotations

from lake.errors import InvalidParameterValue, InvalidTextRepresentation, of
from sql.compute.registry import own
from sql.input import numbers
from sql.input.jsonb import Json, dump, load


@own("jsonb", "jsonb", to="jsonb")
def jsonb_concat(a: str, b: str) -> str:
    x, y = load(a), load(b)
    if isinstance(x, dict) and isinstance(y, dict):
        return dump({**x, **y})
    return dump((x if isinstance(x, list) else [x]) + (y if isinstance(y, list) else [y]))


def _scalar(value: Json, message: str) -> None:
    if not isinstance(value, (list, dict)):
        raise InvalidParameterValue(message)


@own("jsonb", "text[]", to="jsonb", name="jsonb_delete")
def delete(text: str, keys: list[str | None]) -> str:
    value = load(text)
    _scalar(value, "cannot delete from scalar")
    if isinstance(value, dict):
        return dump({k: v for k, v in value.items() if k not in keys})
    return dump([v for v in value if not (isinstance(v, str) and v in keys)])


@own("jsonb", "int4", to="jsonb", name="jsonb_delete_at")
def delete_at(text: str, index: int) -> str:
    value = load(text)
    _scalar(value, "cannot delete from scalar")
    if isinstance(value, dict):
        raise InvalidParameterValue("cannot delete from object using integer index")
    if -len(value) <= index < len(value):
        del value[index]
    return dump(value)


def _index(step: str, level: int) -> int:
    stripped = step.strip(numbers.BLANKS)
    if not numbers.INTEGER.fullmatch(stripped):
        raise InvalidTextRepresentation(f'path element at position {level + 1} is not an integer: "{step}"')
    return int(stripped)


def _step(path: list[str | None], level: int) -> str:
    step = path[level]
    if step is None:
        raise of("22004", f"path element at position {level + 1} is null")
    return step


@own("jsonb", "text[]", to="jsonb")
def jsonb_delete_path(text: str, path: list[str | None]) -> str:
    value = load(text)
    _scalar(value, "cannot delete path in scalar")
    at = value
    for level in range(len(path) if value else 0):
        step, last = _step(path, level), level == len(path) - 1
        if isinstance(at, dict):
            if step not in at:
                break
            if last:
                del at[step]
            else:
                at = at[step]
        elif isinstance(at, list):
            index = _index(step, level)
            if not -len(at) <= index < len(at):
                break
            if last:
                del at[index]
            else:
                at = at[index]
        else:
            break
    return dump(value)


@own("jsonb", "text[]", "jsonb", "bool", to="jsonb", name="jsonb_set")
def put(text: str, path: list[str | None], new: str, create: bool) -> str:
    value = load(text)
    _scalar(value, "cannot set path in scalar")
    at = value
    for level in range(len(path) if value or create else 0):
        step, last = _step(path, level), level == len(path) - 1
        if isinstance(at, dict):
            if last and (create or step in at):
                at[step] = load(new)
            elif not last and step in at:
                at = at[step]
                continue
            break
        if not isinstance(at, list):
            break
        index = _index(step, level)
        inside = -len(at) <= index < len(at)
        if not last:
            if not inside:
                break
            at = at[index]
        elif inside:
            at[index] = load(new)
        elif create:
            at.insert(0 if index < 0 else len(at), load(new))
    return dump(value)


@own("jsonb", "text[]", "jsonb", "bool", to="jsonb")
def jsonb_insert(text: str, path: list[str | None], new: str, after: bool) -> str:
    value = load(text)
    _scalar(value, "cannot set path in scalar")
    at = value
    for level in range(len(path)):
        step, last = _step(path, level), level == len(path) - 1
        if isinstance(at, dict):
            if last and step in at:
                raise of("22023", "cannot replace existing key", hint="Try using the function jsonb_set to replace key value.")
            if last:
                at[step] = load(new)
            elif step in at:
                at = at[step]
                continue
            break
        if not isinstance(at, list):
            break
        index = _index(step, level)
        inside = -len(at) <= index < len(at)
        if not last:
            if not inside:
                break
            at = at[index]
        elif inside:
            place = index if index >= 0 else len(at) + index
            at.insert(place + after, load(new))
        else:
            at.insert(0 if index < 0 else len(at), load(new))
    return dump(value)


@own("jsonb", to="jsonb")
def jsonb_strip_nulls(text: str) -> str:
    def strip(value: Json) -> Json:
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if v is not None}
        return [strip(v) for v in value] if isinstance(value, list) else value

    return dump(strip(load(text)))


@own("jsonb", to="text")
def jsonb_pretty(text: str) -> str:
    def show(value: Json, depth: int) -> str:
        inner, outer = "\n" + "    " * (depth + 1), "\n" + "    " * depth
        if isinstance(value, dict):
            keys = sorted(value, key=lambda k: (len(k.encode()), k.encode()))
            return "{" + ",".join(f"{inner}{dump(k)}: {show(value[k], depth + 1)}" for k in keys) + outer + "}"
        if isinstance(value, list):
            return "[" + ",".join(inner + show(v, depth + 1) for v in value) + outer + "]"
        return dump(value)

    return show(load(text), 0)
