"""The endpoints of a catalog as a tree of path segments.

A segment that is equal goes before a parameter: `/users/me` before `/users/:id`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from tailgate.lake.catalog import Endpoint
from tailgate.lake.errors import CharacterNotInRepertoire, InvalidParameterValue, ProgramLimitExceeded, TailgateError, UndefinedParameter

QUERY_FIELDS_MAX = 100


@dataclass(slots=True)
class _Node:
    """A place in the tree. `children`: by segment, "" for a parameter. `endpoints`: by method."""

    children: dict[str, _Node] = field(default_factory=dict)
    endpoints: dict[str, Endpoint] = field(default_factory=dict)


class Routes:
    """The endpoints by path."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._root = _Node()
        for endpoint in endpoints:
            node = self._root
            for segment in endpoint.path.split("/")[1:]:
                node = node.children.setdefault("" if segment.startswith(":") else ":" + segment, _Node())
            node.endpoints[endpoint.method] = endpoint

    def methods(self, path: str) -> tuple[str, ...]:
        """Returns the methods of the endpoints for a path as sent.

        >>> Routes([]).methods("/users/5")
        ()
        """
        return tuple(dict.fromkeys(method for endpoints in _matches(self._root, _segments(path)) for method in endpoints))

    def find(self, method: str, path: str) -> tuple[Endpoint, dict[str, str]] | None:
        """Returns the endpoint for a path as sent, and the texts of its parameters in the path; None if there is none.

        >>> Routes([]).find("GET", "/users/5") is None
        True
        """
        segments = _segments(path)
        endpoint = next((e[method] for e in _matches(self._root, segments) if method in e), None)
        if endpoint is None:
            return None
        names = endpoint.path.split("/")[1:]
        return endpoint, {name[1:]: text for name, text in zip(names, segments, strict=True) if name.startswith(":")}


def _segments(path: str) -> list[str]:
    return [_decoded(segment) for segment in path.split("/")[1:]]


def _matches(node: _Node, segments: Sequence[str]) -> Iterator[Mapping[str, Endpoint]]:
    """Yields the endpoints of each match by method, the best first."""
    if not segments:
        yield node.endpoints
        return
    for key in (":" + segments[0], ""):
        child = node.children.get(key)
        if child is not None and (key or segments[0]):
            yield from _matches(child, segments[1:])


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
