"""Parses FORMAT of sources and sinks, for the value and optionally the key.

Source: Materialize 0.8 to 0.25, "CREATE SOURCE: Kafka", "CREATE SINK".
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from tailgate.lake.catalog.formats import KsqldbFormatName
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.kafka_statements import Avro, Bytes, Csv, Format, Json, Ksqldb, Protobuf, Regex, Strategy, Text
from tailgate.sql.statements.parsers.clauses import column_names, options, relation_name
from tailgate.sql.statements.parsers.kafka.connections import with_underscores
from tailgate.sql.statements.parsers.unsupported import unsupported
from tailgate.sql.statements.values import Options

COLUMNS_MAX = 1600  # the maximum for a relation, as in PostgreSQL


def formats(cursor: Parser) -> tuple[Format | None, Format]:
    """Parses FORMAT f, or KEY FORMAT f VALUE FORMAT f. Returns the formats of the key and the value."""
    if cursor.accept_word("key", "format"):
        key = _format(cursor)
        cursor.expect_word("value", "format")
        return key, _format(cursor)
    cursor.expect_word("format")
    return None, _format(cursor)


def _format(cursor: Parser) -> Format:
    match cursor.any_word("bytes", "text", "json", "avro", "csv", "protobuf", "regex", "ksqldb"):
        case "bytes":
            return Bytes()
        case "text":
            return Text()
        case "json":
            return Json()
        case "avro":
            return _avro(cursor)
        case "csv":
            return _csv(cursor)
        case "regex":
            return _regex(cursor)
        case "protobuf":
            return _protobuf(cursor)
        case "ksqldb":
            return _ksqldb(cursor)
    raise cursor.error()


def _csv(cursor: Parser) -> Csv:
    """Parses WITH {n COLUMNS | HEADER (name, …)} [DELIMITED BY 'c']."""
    cursor.expect_word("with")
    at = cursor.position
    header: tuple[str, ...] = ()
    if cursor.accept_word("header"):
        if not cursor.at("("):
            raise InvalidParameterValue("the columns of a CSV header must be named", hint="Write HEADER (name, …).", position=at)
        header = column_names(cursor)
        count = len(header)
    else:
        count = cursor.integer()
        cursor.expect_word("columns")
    if not 1 <= count <= COLUMNS_MAX:
        raise InvalidParameterValue(f"a source has between 1 and {COLUMNS_MAX} columns", position=at)
    return Csv(count, header, _delimiter(cursor))


def _delimiter(cursor: Parser) -> str:
    """Parses [DELIMITED BY 'c']."""
    if not cursor.accept_word("delimited", "by"):
        return ","
    at = cursor.position
    delimiter = cursor.string()
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InvalidParameterValue("the delimiter must be one character, no quote and no line end", position=at)
    return delimiter


def _ksqldb(cursor: Parser) -> Ksqldb:
    """Parses name (column, …) [DELIMITED BY 'c'] [UNWRAPPED] [USING …] [WINDOW {n | SESSION}].

    USING is followed by CONFLUENT SCHEMA REGISTRY {'url' | CONNECTION c} or SCHEMA 'message'.
    """
    names: tuple[KsqldbFormatName, ...] = get_args(KsqldbFormatName)
    word = cursor.any_word(*(name.lower() for name in names))
    if word is None:
        raise cursor.error()
    name = names[[n.lower() for n in names].index(word)]
    columns, delimiter = column_names(cursor), _delimiter(cursor)
    unwrapped, registry, schema = cursor.accept_word("unwrapped"), "", ""
    connection: Name | None = None
    window: Literal["", "time", "session"] = ""
    size = 0
    if cursor.accept_word("using", "schema"):
        schema = cursor.string()
    elif cursor.accept_word("using", "confluent", "schema", "registry", "connection"):
        connection = relation_name(cursor)
    elif cursor.accept_word("using", "confluent", "schema", "registry"):
        registry = cursor.string()
    if cursor.accept_word("window"):
        window = "session" if cursor.accept_word("session") else "time"
        size = cursor.integer() if window == "time" else 0
    return Ksqldb(name, columns, delimiter, not unwrapped, registry, schema, window, size, connection)


def _regex(cursor: Parser) -> Regex:
    at = cursor.position
    pattern = cursor.string()
    try:
        groups = re.compile(re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", pattern)).groups
    except re.error as e:
        raise InvalidParameterValue(f"invalid regular expression: {e}", position=at) from None
    if not groups:
        raise InvalidParameterValue("the regular expression has no group", hint="Each group becomes a column.", position=at)
    return Regex(pattern)


def _avro(cursor: Parser) -> Avro:
    cursor.expect_word("using")
    at = cursor.position
    if cursor.accept_word("schema"):
        if cursor.at_word("file"):
            raise unsupported("SCHEMA FILE", at, "Write the schema itself: USING SCHEMA '…'.")
        schema = cursor.string()
        return Avro(None, schema, _avro_options(cursor))
    cursor.expect_word("confluent", "schema", "registry")
    if cursor.accept_word("connection"):
        connection = relation_name(cursor)
        settings = with_underscores(options(cursor)) if cursor.at("(") else ()
        return Avro(None, None, settings, connection, *_strategies(cursor))
    url_at = cursor.position
    url = cursor.string()
    if not url.startswith(("http://", "https://")):
        raise InvalidParameterValue(f'"{url}" is not the URL of a schema registry', hint="Write http://host:port.", position=url_at)
    settings = _avro_options(cursor)
    return Avro(url, None, settings, None, *_strategies(cursor))


def _strategies(cursor: Parser) -> tuple[Strategy, Strategy]:
    """Parses [KEY STRATEGY s] [VALUE STRATEGY s], where s is INLINE 'schema', ID n or LATEST."""
    if cursor.at_word("seed"):
        raise unsupported("SEED", cursor.position)
    strategies: list[Strategy] = []
    for part in ("key", "value"):
        strategy: Strategy = None
        if cursor.accept_word(part, "strategy"):
            match cursor.any_word("inline", "id", "latest"):
                case "inline":
                    strategy = cursor.string()
                case "id":
                    strategy = cursor.integer()
                case None:
                    raise cursor.error()
        strategies.append(strategy)
    return strategies[0], strategies[1]


def _protobuf(cursor: Parser) -> Protobuf:
    """Parses [MESSAGE 'name'] USING {SCHEMA '…' | CONFLUENT SCHEMA REGISTRY {'url' | CONNECTION name}}."""
    message = cursor.string() if cursor.accept_word("message") else None
    if cursor.at_word("using", "schema"):
        cursor.accept_word("using", "schema")
        if cursor.at_word("file"):
            raise unsupported("SCHEMA FILE", cursor.position, "Write the schema itself: USING SCHEMA '…'.")
        return Protobuf(None, cursor.string(), message, _avro_options(cursor))
    at = cursor.position
    read = _avro(cursor)
    if read.key_strategy is not None or read.value_strategy is not None:
        raise unsupported("a strategy of FORMAT PROTOBUF", at, "The newest schema is taken; or write it out: USING SCHEMA '…'.")
    return Protobuf(read.registry, None, message, read.options, read.connection)


def _avro_options(cursor: Parser) -> Options:
    """Parses [WITH] ( … ), the options of a format, if they follow directly."""
    if cursor.at_word("with") and cursor.at("(", 1):
        cursor.advance()
        return options(cursor)
    return options(cursor) if cursor.at("(") else ()
