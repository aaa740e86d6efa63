"""The endpoints of a catalog as a tree of path segments.

A segment that is equal goes before a parameter: `/users/me` before `/users/:id`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from tailgate.lake.catalog import Endpoint
from tailgate.lake.errors import CharacterNotInRepertoire, InvalidParameterValue, ProgramLimitExceeded, TailgateError, UndefinedParameter

QUERY_FIELDS_MAX = 100


@dataclass(slots=True)
class _Node:
    """A place in the tree. `children`: by segment, "" for a parameter."""

    children: dict[str, _Node] = field(default_factory=dict)
    endpoint: Endpoint | None = None


class Routes:
    """The endpoints by path."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._root = _Node()
        for endpoint in endpoints:
            node = self._root
            for segment in endpoint.path.split("/")[1:]:
                node = node.children.setdefault("" if segment.startswith(":") else ":" + segment, _Node())
            node.endpoint = endpoint

    def find(self, path: str) -> tuple[Endpoint, dict[str, str]] | None:
        """Returns the endpoint for a path as sent, and the texts of its parameters in the path; None if there is none.

        >>> Routes([]).find("/users/5") is None
        True
        """
        segments = [_decoded(segment) for segment in path.split("/")[1:]]
        endpoint = _find(self._root, segments)
        if endpoint is None:
            return None
        names = endpoint.path.split("/")[1:]
        return endpoint, {name[1:]: text for name, text in zip(names, segments, strict=True) if name.startswith(":")}


def _find(node: _Node, segments: Sequence[str]) -> Endpoint | None:
    if not segments:
        return node.endpoint
    for key in (":" + segments[0], ""):
        child = node.children.get(key)
        if child is not None and (key or segments[0]) and (endpoint := _find(child, segments[1:])) is not None:
            return endpoint
    return None


def _decoded(text: str) -> str:
    """Decodes %xx. Raises 22021 for bytes that are not UTF-8."""
    try:
        return unquote(text, errors="strict") if "%" in text else text.encode("latin-1").decode()
    except ValueError:
        raise _not_utf8() from None


def query_fields(query: str) -> Mapping[str, str]:
    """Returns the fields of a query string. Raises 22023 if one occurs twice, 54000 if there are too many, 22021 for invalid UTF-8."""
    if not query:
        return {}
    try:
        pairs = parse_qsl(query.encode("latin-1").decode(), keep_blank_values=True, errors="strict", max_num_fields=QUERY_FIELDS_MAX)
    except UnicodeDecodeError:
        raise _not_utf8() from None
    except ValueError:
        raise ProgramLimitExceeded(f"a query string may have at most {QUERY_FIELDS_MAX} fields") from None
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise InvalidParameterValue("a parameter occurs more than once")
    return fields


def check_names(fields: Iterable[str], names: Iterable[str]) -> None:
    """Raises 42P02 for a field that is not a parameter."""
    expected = frozenset(names)
    for name in fields:
        if name not in expected:
            raise UndefinedParameter(f'there is no parameter "{name}"')


def _not_utf8() -> TailgateError:
    return CharacterNotInRepertoire('invalid byte sequence for encoding "UTF8"')
