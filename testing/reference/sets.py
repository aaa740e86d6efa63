"""Reference implementation of functions in FROM. jsonb values are canonical text."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any

from testing.reference.values import Failure, Row, Value

EPOCH = datetime(1970, 1, 1)


def generated(name: str, arguments: Row) -> list[Row]:
    """Returns the rows of a call; none if an argument is NULL."""
    if any(a is None for a in arguments):
        return []
    first: Any = arguments[0]
    match name:
        case "generate_series":
            return [(v,) for v in series(*arguments)]
        case "unnest":
            return [(v,) for v in first]
        case "regexp_split_to_table":
            return [(v,) for v in re.split(str(arguments[1]), first)]
        case "hop":
            return windows(*arguments)
        case "jsonb_array_elements" | "jsonb_array_elements_text":
            elements = of_kind(first, list, "cannot extract elements from an object")
            return [(plain_text(e) if name.endswith("_text") else json_text(e),) for e in elements]
    members = sorted(of_kind(first, dict, f"cannot call {name} on a non-object").items(), key=lambda m: (len(m[0].encode()), m[0].encode()))
    if name == "jsonb_object_keys":
        return [(k,) for k, _ in members]
    if name in ("jsonb_each", "jsonb_each_text"):
        return [(k, plain_text(v) if name.endswith("_text") else json_text(v)) for k, v in members]
    raise NotImplementedError(name)


def series(first: Any, last: Any, step: Any = 1) -> list[Value]:
    if step == 0:
        raise Failure("22023", "step size cannot equal zero")
    return list(range(first, last + (1 if step > 0 else -1), step))


def windows(time: Any, every: Any, size: Any) -> list[Row]:
    """Returns all windows that contain the time. They begin at multiples of `every`."""
    epoch = EPOCH.replace(tzinfo=time.tzinfo)
    step, length = (timedelta(days=days, microseconds=micros) for _, days, micros in (every, size))
    start = epoch + (time - length - epoch) // step * step + step
    out: list[Row] = []
    while start <= time:
        out.append((start, start + length))
        start += step
    return out


def of_kind(text: str, kind: type, message: str) -> Any:
    document = json.loads(text)
    if not isinstance(document, kind):
        raise Failure("22023", message)
    return document


def json_text(value: Any) -> str:
    """Returns the canonical text of a JSON value. Its numbers must be integers."""
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda m: (len(m[0].encode()), m[0].encode()))
        return "{" + ", ".join(f"{json_text(k)}: {json_text(v)}" for k, v in members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def plain_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json_text(value)
