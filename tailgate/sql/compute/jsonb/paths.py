"""Functions and operators of jsonb and jsonpath.

Source: PostgreSQL 15, src/backend/utils/adt/jsonpath_exec.c.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, of
from tailgate.lake.types import Type
from tailgate.sql.compute.jsonb.path_evaluation import SINGLETON, exists, items, regex_arguments
from tailgate.sql.compute.jsonb.path_methods import PathError
from tailgate.sql.compute.regexp import patterns
from tailgate.sql.compute.registry import udf
from tailgate.values.caching import cached
from tailgate.values.codec.style import DEFAULT
from tailgate.values.jsonpath import codec
from tailgate.values.jsonpath.nodes import Node, Path
from tailgate.values.jsonpath.parser import parse
from tailgate.values.strings.jsonb import Json, dump, load

CACHE_MAX = 256  # paths

_parsed = cached(CACHE_MAX)(parse)


@udf("text", to="jsonpath")
def text_to_jsonpath(text: str) -> str:
    return codec.read(text, Type("jsonpath"), DEFAULT)


def for_java(path_text: str) -> str:
    """Returns a parsed path as JSON, for the Java library. The text of a LIKE_REGEX is a pattern of Java."""

    def tree(node: Node) -> list[object]:
        text = node.text
        if node.kind == "method" and text == "datetime":
            raise FeatureNotSupported("jsonpath item method .datetime() in a view is not supported")
        if node.kind == "regex":
            pattern, flags = regex_arguments(node)
            text = patterns.for_java(pattern, flags, searching=False)
        return [node.kind, text, [tree(argument) for argument in node.arguments]]

    path = _parsed(path_text)
    return json.dumps({"lax": path.lax, "item": tree(path.item)})


def _arguments(document: str, path_text: str, variables: str) -> tuple[Path, Json, dict[str, Json]]:
    """Returns the path, the document and the variables of a call. Raises 22023."""
    values = load(variables)
    if not isinstance(values, dict):
        raise InvalidParameterValue('"vars" argument is not an object')
    return _parsed(path_text), load(document), values


def _exists(document: str, path_text: str, variables: str, silent: bool, zone: str | None) -> bool | None:
    arguments = _arguments(document, path_text, variables)
    try:
        return exists(*arguments, zone)
    except PathError as failure:
        if silent:
            return None
        raise failure.error from None


def _all(document: str, path_text: str, variables: str, silent: bool, zone: str | None) -> list[Json]:
    results: list[Json] = []
    try:
        for item in items(*_arguments(document, path_text, variables), zone):
            results.append(item)
    except PathError as failure:
        if not silent:
            raise failure.error from None
    return results


def _match(document: str, path_text: str, variables: str, silent: bool, zone: str | None) -> bool | None:
    results = _all(document, path_text, variables, silent, zone)
    if len(results) == 1 and (results[0] is None or isinstance(results[0], bool)):
        return results[0]
    if silent:
        return None
    raise of(SINGLETON, "single boolean result is expected")


def _query(document: str, path_text: str, variables: str, silent: bool, zone: str | None) -> list[str]:
    return [dump(item) for item in _all(document, path_text, variables, silent, zone)]


def _query_array(document: str, path_text: str, variables: str, silent: bool, zone: str | None) -> str:
    return dump(_all(document, path_text, variables, silent, zone))


def _query_first(document: str, path_text: str, variables: str, silent: bool, zone: str | None) -> str | None:
    results = _all(document, path_text, variables, silent, zone)
    return dump(results[0]) if results else None


def _register(call: str, result: str, function: Callable[..., Any]) -> None:
    """Registers a function, its variant with `_tz`, which is in UTC, and the latter in a session's zone."""

    def plain(document: str, path_text: str, variables: str, silent: bool) -> Any:
        return function(document, path_text, variables, silent, None)

    def in_utc(document: str, path_text: str, variables: str, silent: bool) -> Any:
        return function(document, path_text, variables, silent, "UTC")

    arguments = "jsonb", "jsonpath", "jsonb", "bool"
    udf(*arguments, to=result, name=f"jsonb_path_{call}")(plain)
    udf(*arguments, to=result, name=f"jsonb_path_{call}_tz")(in_utc)
    udf(*arguments, "text", to=result, name=f"jsonb_path_{call}_in")(function)


_register("exists", "bool", _exists)
_register("match", "bool", _match)
_register("query", "jsonb[]", _query)
_register("query_array", "jsonb", _query_array)
_register("query_first", "jsonb", _query_first)
