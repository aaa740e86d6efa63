"""Functions that change a jsonb: concatenation, deletion, and changes at a path.

Source: PostgreSQL 15, src/backend/utils/adt/jsonfuncs.c.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tailgate.lake.errors import InvalidParameterValue, InvalidTextRepresentation, NullValueNotAllowed, ProgramLimitExceeded
from tailgate.sql.compute.registry import udf
from tailgate.values.composites.dimensions import ASSIGNED_MAX
from tailgate.values.numbers.integers import strtoint
from tailgate.values.strings.jsonb import Json, dump, load, member_order

# A change of the object or array that contains the last step of a path: container, step, level.
Change: TypeAlias = Callable[[Json, str, int], None]


# --- whole values --------------------------------------------------------------------------------


@udf("jsonb", "jsonb", to="jsonb")
def jsonb_concat(a: str, b: str) -> str:
    x, y = load(a), load(b)
    if isinstance(x, dict) and isinstance(y, dict):
        return dump({**x, **y})
    return dump((x if isinstance(x, list) else [x]) + (y if isinstance(y, list) else [y]))


@udf("jsonb", to="jsonb")
def jsonb_strip_nulls(text: str) -> str:
    def strip(value: Json) -> Json:
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if v is not None}
        return [strip(v) for v in value] if isinstance(value, list) else value

    return dump(strip(load(text)))


@udf("jsonb", to="text")
def jsonb_pretty(text: str) -> str:
    def pretty(value: Json, depth: int) -> str:
        inner, outer = "\n" + "    " * (depth + 1), "\n" + "    " * depth
        if isinstance(value, dict):
            members = (f"{inner}{dump(k)}: {pretty(value[k], depth + 1)}" for k in sorted(value, key=member_order))
            return "{" + ",".join(members) + outer + "}"
        if isinstance(value, list):
            return "[" + ",".join(inner + pretty(v, depth + 1) for v in value) + outer + "]"
        return dump(value)

    return pretty(load(text), 0)


# --- one key or index ----------------------------------------------------------------------------


def _container(text: str, message: str) -> Json:
    """Returns an object or array. Raises 22023 with the message for a scalar."""
    value = load(text)
    if not isinstance(value, (list, dict)):
        raise InvalidParameterValue(message)
    return value


@udf("jsonb", "text[]", to="jsonb")
def jsonb_delete(text: str, keys: list[str | None]) -> str:
    value = _container(text, "cannot delete from scalar")
    if isinstance(value, dict):
        return dump({k: v for k, v in value.items() if k not in keys})
    return dump([v for v in value if not (isinstance(v, str) and v in keys)])


@udf("jsonb", "int4", to="jsonb")
def jsonb_delete_at(text: str, index: int) -> str:
    value = _container(text, "cannot delete from scalar")
    if isinstance(value, dict):
        raise InvalidParameterValue("cannot delete from object using integer index")
    if _position(value, index) is not None:
        del value[index]
    return dump(value)


def _position(items: list[Json], index: int) -> int | None:
    """Returns the position of an index, which counts from the end if it is negative, or None."""
    return index % len(items) if -len(items) <= index < len(items) else None


# --- paths ---------------------------------------------------------------------------------------


def _edit(text: str, path: list[str | None], scalar_message: str, *, changes_empty: bool, change: Change) -> str:
    """Applies a change where a path leads to, if it exists.

    `changes_empty` tells whether the change applies to an empty object or array.
    """
    value = _container(text, scalar_message)
    levels = len(path) if value or changes_empty else 0
    current = value
    for level in range(levels):
        step = path[level]
        if step is None:
            raise NullValueNotAllowed(f"path element at position {level + 1} is null")
        if not isinstance(current, (dict, list)):
            break
        if level == levels - 1:
            change(current, step, level)
        elif isinstance(current, dict):
            if step not in current:
                break
            current = current[step]
        else:
            position = _position(current, _index(step, level))
            if position is None:
                break
            current = current[position]
    return dump(value)


def _index(step: str, level: int) -> int:
    index = strtoint(step)
    if index is None:
        raise InvalidTextRepresentation(f'path element at position {level + 1} is not an integer: "{step}"')
    return index


@udf("jsonb", "text[]", to="jsonb")
def jsonb_delete_path(text: str, path: list[str | None]) -> str:
    def delete(container: Json, step: str, level: int) -> None:
        if isinstance(container, dict):
            container.pop(step, None)
            return
        position = _position(container, _index(step, level))
        if position is not None:
            del container[position]

    return _edit(text, path, "cannot delete path in scalar", changes_empty=False, change=delete)


@udf("jsonb", "text[]", "jsonb", "bool", to="jsonb")
def jsonb_set(text: str, path: list[str | None], replacement: str, create: bool) -> str:
    def replace(container: Json, step: str, level: int) -> None:
        if isinstance(container, dict):
            if create or step in container:
                container[step] = load(replacement)
            return
        index = _index(step, level)
        position = _position(container, index)
        if position is not None:
            container[position] = load(replacement)
        elif create:
            container.insert(0 if index < 0 else len(container), load(replacement))

    return _edit(text, path, "cannot set path in scalar", changes_empty=create, change=replace)


@udf("jsonb", "text[]", "jsonb", to="jsonb")
def jsonb_assigned(text: str, path: list[str | None], replacement: str) -> str:
    """Computes the assignment `text[path] = replacement`, which creates missing objects and arrays. NULLs fill a gap in an array.

    Source: setPath and push_path with JB_PATH_FILL_GAPS.
    """

    def gap(count: int) -> list[Json]:
        if count > ASSIGNED_MAX:
            raise ProgramLimitExceeded(f"array size exceeds the maximum allowed ({ASSIGNED_MAX})")
        return [None] * max(count, 0)

    def created(level: int) -> Json:
        if level == len(steps):
            return load(replacement)
        step, inner = steps[level], created(level + 1)
        index = strtoint(step)
        return {step: inner} if index is None else [*gap(index), inner]

    def assigned(value: Json, level: int) -> Json:
        if level == len(steps):
            return load(replacement)
        step = steps[level]
        if isinstance(value, dict):
            value[step] = assigned(value[step], level + 1) if step in value else created(level + 1)
        elif isinstance(value, list):
            index = _index(step, level)
            if -index > len(value):
                raise InvalidParameterValue(f"path element at position {level + 1} is out of range: {index}")
            index += len(value) * (index < 0)
            if index < len(value):
                value[index] = assigned(value[index], level + 1)
            else:
                value += [*gap(index - len(value)), created(level + 1)]
        else:
            raise InvalidParameterValue(
                "cannot replace existing key", detail="The path assumes key is a composite object, but it is a scalar value."
            )
        return value

    steps = [step for step in path if step is not None]
    if len(steps) < len(path):
        raise NullValueNotAllowed("jsonb subscript in assignment must not be null")
    return dump(assigned(load(text), 0))


@udf("jsonb", "text[]", "jsonb", "bool", to="jsonb")
def jsonb_insert(text: str, path: list[str | None], inserted: str, after: bool) -> str:
    def insert(container: Json, step: str, level: int) -> None:
        if isinstance(container, dict):
            if step in container:
                hint = "Try using the function jsonb_set to replace key value."
                raise InvalidParameterValue("cannot replace existing key", hint=hint)
            container[step] = load(inserted)
            return
        index = _index(step, level)
        position = _position(container, index)
        if position is not None:
            container.insert(position + after, load(inserted))
        else:
            container.insert(0 if index < 0 else len(container), load(inserted))

    return _edit(text, path, "cannot set path in scalar", changes_empty=True, change=insert)
