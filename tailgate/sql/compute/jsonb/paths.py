"""Functions and operators of jsonb and jsonpath.

Source: PostgreSQL 15, src/backend/utils/adt/jsonpath_exec.c.
"""

from __future__ import annotations

import json

from tailgate.lake.errors import InvalidParameterValue, of
from tailgate.lake.types import Type
from tailgate.sql.compute.jsonb.path_evaluation import SINGLETON, PathError, exists, items, regex_arguments
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


@udf("jsonb", "jsonpath", "jsonb", "bool", to="bool")
def jsonb_path_exists(document: str, path_text: str, variables: str, silent: bool) -> bool | None:
    arguments = _arguments(document, path_text, variables)
    try:
        return exists(*arguments)
    except PathError as failure:
        if silent:
            return None
        raise failure.error from None


def _all(document: str, path_text: str, variables: str, silent: bool) -> list[Json]:
    results: list[Json] = []
    try:
        for item in items(*_arguments(document, path_text, variables)):
            results.append(item)
    except PathError as failure:
        if not silent:
            raise failure.error from None
    return results


@udf("jsonb", "jsonpath", "jsonb", "bool", to="bool")
def jsonb_path_match(document: str, path_text: str, variables: str, silent: bool) -> bool | None:
    results = _all(document, path_text, variables, silent)
    if len(results) == 1 and (results[0] is None or isinstance(results[0], bool)):
        return results[0]
    if silent:
        return None
    raise of(SINGLETON, "single boolean result is expected")


@udf("jsonb", "jsonpath", "jsonb", "bool", to="jsonb[]")
def jsonb_path_query(document: str, path_text: str, variables: str, silent: bool) -> list[str]:
    return [dump(item) for item in _all(document, path_text, variables, silent)]


@udf("jsonb", "jsonpath", "jsonb", "bool", to="jsonb")
def jsonb_path_query_array(document: str, path_text: str, variables: str, silent: bool) -> str:
    return dump(_all(document, path_text, variables, silent))


@udf("jsonb", "jsonpath", "jsonb", "bool", to="jsonb")
def jsonb_path_query_first(document: str, path_text: str, variables: str, silent: bool) -> str | None:
    results = _all(document, path_text, variables, silent)
    return dump(results[0]) if results else None
