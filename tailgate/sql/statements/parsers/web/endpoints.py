"""Parses CREATE ENDPOINT: a query, or a statement that writes, with named parameters that gateways serve over HTTP.

    CREATE ENDPOINT users GET '/users/:id' (:id bigint) AS SELECT * FROM user_information WHERE id = :id
    CREATE ENDPOINT order POST '/orders' AS INSERT INTO orders (item) VALUES (:item) RETURNING id

In the query `:name` stands for a parameter if no blank follows the colon, as in psql. It is replaced by `$n` and blanks of the same
length, so positions in the query remain those of the statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from tailgate.lake.catalog.formats import EndpointMethod
from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition, ReservedName, SyntaxError_
from tailgate.lake.types import Type
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.type_resolution import named_type
from tailgate.sql.grammar.types import type_name
from tailgate.sql.lexer.tokens import Token, tokens
from tailgate.sql.statements.definitions import CreateEndpoint, EndpointParameter
from tailgate.sql.statements.parsers import writes
from tailgate.sql.statements.parsers.clauses import if_not_exists, query, relation_name, with_options
from tailgate.sql.statements.values import QueryText
from tailgate.sql.statements.writes import Delete, Insert, Merge, Update, WithWrites, WriteText

PARAMETERS_MAX = 99  # so that `$n` is never longer than `:name` by more than one character
PATH_CHARACTERS_MAX = 1000
SEGMENT = re.compile(r"[A-Za-z0-9._~-]+|:[a-z_][a-z0-9_]*")
RESERVED = ("limit", "cursor")  # of the query string, for results with several rows
RESERVED_PATHS = ("/openapi.json",)
METHODS: tuple[EndpointMethod, ...] = ("GET", "POST", "PUT", "PATCH", "DELETE")


def create_endpoint(cursor: Parser) -> CreateEndpoint:
    """Parses [OR REPLACE] ENDPOINT …, after CREATE."""
    replace = cursor.accept_word("or", "replace")
    cursor.expect_word("endpoint")
    absent = not replace and if_not_exists(cursor)
    this = relation_name(cursor)
    method = _method(cursor)
    at = cursor.position
    path = cursor.string()
    names = _path_parameters(path, at)
    declared = _parameters(cursor)
    options, _ = with_options(cursor)
    cursor.expect_word("as")
    order = _numbered((*(p.name for p in declared), *names), cursor.tokens[cursor.index :])
    for parameter in (p for p in order if p in RESERVED):
        raise ReservedName(f'parameter name "{parameter}" is reserved', position=at)
    text = _query(cursor, order, method)
    return CreateEndpoint(this, method, path, _complete(declared, order), text, options, absent, replace)


def _method(cursor: Parser) -> EndpointMethod:
    """Parses {GET | POST | PUT | PATCH | DELETE}."""
    for method in METHODS:
        if cursor.accept_word(method.lower()):
            return method
    if (other := cursor.any_word("head", "options")) is not None:
        at = cursor.tokens[cursor.index - 1].position
        hint = "Gateways answer HEAD and OPTIONS for all endpoints."
        raise FeatureNotSupported(f"{other.upper()} endpoints are not supported", hint=hint, position=at)
    raise cursor.error()


def _path_parameters(path: str, at: int) -> list[str]:
    """Returns the parameters in a path. Raises 42P17 if the path is not valid."""
    segments = path.split("/")
    hint = "A path is '/' or segments like '/users/:id', of letters, digits, '-', '.', '_' and '~', or a parameter in lower case."
    valid = path == "/" or (segments[0] == "" and all(SEGMENT.fullmatch(s) and s not in (".", "..") for s in segments[1:]))
    if not valid or len(path) > PATH_CHARACTERS_MAX:
        raise InvalidObjectDefinition(f'invalid path: "{path}"', hint=hint, position=at)
    if path in RESERVED_PATHS:
        raise ReservedName(f'path "{path}" is reserved', position=at)
    names = [s[1:] for s in segments if s.startswith(":")]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InvalidObjectDefinition(f'parameter name "{name}" used more than once', position=at)
    return names


def _parameters(cursor: Parser) -> tuple[EndpointParameter, ...]:
    """Parses [( :name type [DEFAULT value], … )]."""
    if not cursor.accept("("):
        return ()
    items = cursor.listed(_parameter)
    cursor.expect(")")
    for i, item in enumerate(items):
        if item.name in [other.name for other in items[:i]]:
            raise InvalidObjectDefinition(f'parameter name "{item.name}" used more than once')
    return tuple(items)


def _parameter(cursor: Parser) -> EndpointParameter:
    """Parses :name type [DEFAULT {string | number | TRUE | FALSE | NULL}]."""
    cursor.expect(":")
    if cursor.token.kind != "word":
        raise cursor.error()
    name = cursor.advance().value
    at = cursor.position
    type = named_type(type_name(cursor))
    if not cursor.accept_word("default"):
        return EndpointParameter(name, type, position=at)
    if cursor.accept_word("null"):
        return EndpointParameter(name, type, True, position=at)
    sign = "-" if cursor.accept("-") else ""
    token = cursor.token
    if token.kind not in ("integer", "decimal") and (sign or (token.kind != "string" and token.value not in ("true", "false"))):
        raise SyntaxError_("DEFAULT of a parameter must be a constant", position=token.position)
    return EndpointParameter(name, type, True, sign + cursor.advance().value, at)


def _uses(row: Sequence[Token]) -> list[tuple[int, int, str]]:
    """Returns begin, end and name of each `:name`."""
    return [
        (colon.position, word.end, word.value)
        for colon, word in pairwise(row)
        if colon.kind == "operator" and colon.value == ":" and word.kind == "word" and word.position == colon.end
    ]


def _numbered(names: Sequence[str], row: Sequence[Token]) -> tuple[str, ...]:
    """Returns the names of $1, $2, …: first those outside the query. Raises 42P17 if the query does not use one of these."""
    used = [name for _, _, name in _uses(row)]
    for name in names:
        if name not in used:
            raise InvalidObjectDefinition(f'parameter ":{name}" is not used in the query')
    order = tuple(dict.fromkeys((*names, *used)))
    if len(order) > PARAMETERS_MAX:
        raise InvalidObjectDefinition(f"endpoints cannot have more than {PARAMETERS_MAX} parameters")
    return order


def _query(cursor: Parser, order: tuple[str, ...], method: EndpointMethod) -> QueryText | WriteText:
    """Parses the query, or the statement that writes, with its named parameters. Raises 42P17 if it does not fit the method."""
    text = cursor.text
    for begin, end, name in _uses(cursor.tokens[cursor.index :]):
        parameter = f"${order.index(name) + 1}"
        if len(parameter) > end - begin:
            raise FeatureNotSupported(
                "a name of one letter is not supported behind the ninth parameter", hint="Use a longer name.", position=begin
            )
        text = text[:begin] + parameter.ljust(end - begin) + text[end:]
    cursor.text, cursor.tokens = text, tokens(text)
    start = cursor.position
    write = _write(cursor)
    if method == "GET":
        if write is not None:
            raise InvalidObjectDefinition("an endpoint of GET cannot write", hint="Use POST, PUT, PATCH or DELETE.", position=start)
        return query(cursor)
    if write is None:
        hint = "Use INSERT, UPDATE or DELETE with RETURNING, or GET."
        raise InvalidObjectDefinition(f"an endpoint of {method} must write", hint=hint, position=start)
    if not write.returning:
        raise InvalidObjectDefinition("an endpoint that writes needs RETURNING", position=start)
    return WriteText(cursor.since(start), write, start)


def _write(cursor: Parser) -> Insert | Update | Delete | None:
    """Parses INSERT, UPDATE or DELETE. Returns None and consumes nothing for a query."""
    at = cursor.position
    write = writes.write(cursor)
    if isinstance(write, Merge):
        raise FeatureNotSupported("MERGE in an endpoint is not supported", hint="Use INSERT … ON CONFLICT.", position=at)
    if isinstance(write, WithWrites):
        raise FeatureNotSupported("WITH with a statement that writes is not supported in an endpoint", position=at)
    return write


def _complete(declared: Sequence[EndpointParameter], order: Sequence[str]) -> tuple[EndpointParameter, ...]:
    """Returns all parameters in order; those that are not declared have the type that the query implies."""
    by_name = {p.name: p for p in declared}
    return tuple(by_name.get(name) or EndpointParameter(name, Type("unknown")) for name in order)
