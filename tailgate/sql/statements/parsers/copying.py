"""Parses COPY … TO STDOUT and COPY … FROM STDIN.

Source: PostgreSQL 15, "COPY", with its older syntax; Materialize 0.25, "COPY TO".
"""

from __future__ import annotations

from typing import Literal

from sqlglot import exp

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.sql.grammar.names import names, place, relation
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.parsers.clauses import options
from tailgate.sql.statements.parsers.cursors import read
from tailgate.sql.statements.parsers.writes import write
from tailgate.sql.statements.queries import CopyTo, Select
from tailgate.sql.statements.values import Options, QueryText
from tailgate.sql.statements.writes import ColumnName, CopyFrom, Merge

Format = Literal["text", "csv", "binary"]


def copy(cursor: Parser) -> CopyTo | CopyFrom:
    """Parses COPY {(statement) | relation [(columns)]} TO STDOUT, or COPY relation [(columns)] FROM STDIN.

    Both accept [[WITH] (options)].
    """
    cursor.expect_word("copy")
    if cursor.accept("("):
        at = cursor.position
        statement = write(cursor) or read(cursor)
        if isinstance(statement, Merge):
            raise FeatureNotSupported("MERGE not supported in COPY", position=at)
        cursor.expect(")")
        return CopyTo(statement, *_to(cursor))
    binary = cursor.accept_word("binary")
    cursor.accept_word("into")
    begin = cursor.position
    table = relation(cursor)
    end = cursor.tokens[cursor.index - 1].end
    columns = names(cursor) if cursor.at("(") else []
    if cursor.accept_word("from"):
        return _from(cursor, Name(table.name, table.text("db") or None, begin), columns, binary)
    tree: exp.Select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=table))
    text = "TABLE " + cursor.text[begin:end]
    if columns:
        listed = [place(exp.Column(this=c), c.meta["position"]) for c in columns]
        tree.set("expressions", listed)
        text = f"SELECT {', '.join(c.sql('postgres') for c in listed)} FROM {cursor.text[begin:end]}"
    return CopyTo(Select(QueryText(text, begin, tree)), *_to(cursor), Name(table.name, table.text("db") or None, begin))


def _to(cursor: Parser) -> tuple[Format, Options]:
    cursor.expect_word("to")
    at = cursor.position
    if cursor.token.kind == "string" or cursor.accept_word("program"):
        raise FeatureNotSupported("COPY … TO a file is not supported", hint="Use COPY … TO STDOUT, or \\copy in psql.", position=at)
    if cursor.any_word("stdout", "stdin") is None:
        raise cursor.error()
    return _options(cursor, at)


def _from(cursor: Parser, table: Name, columns: list[exp.Identifier], binary: bool) -> CopyFrom:
    at = cursor.position
    if cursor.token.kind == "string" or cursor.accept_word("program"):
        raise FeatureNotSupported("COPY … FROM a file is not supported", hint="Use COPY … FROM STDIN, or \\copy in psql.", position=at)
    if cursor.any_word("stdin", "stdout") is None:
        raise cursor.error()
    format, settings = _options(cursor, at)
    if cursor.at_word("where"):
        raise FeatureNotSupported("COPY … FROM with WHERE is not supported", position=cursor.position)
    column_names = tuple(ColumnName(c.name, position=c.meta["position"]) for c in columns)
    return CopyFrom(table, column_names, "binary" if binary else format, settings)


def _options(cursor: Parser, at: int) -> tuple[Format, Options]:
    settings: Options = ()
    cursor.accept_word("with")
    if cursor.at("("):
        settings = options(cursor)
    else:
        while (word := cursor.any_word("csv", "binary", "header", "delimiter", "null", "quote", "escape")) is not None:
            if word in ("csv", "binary"):
                settings += (("format", word),)
            elif word == "header":
                settings += (("header", True),)
            else:
                cursor.accept_word("as")
                settings += ((word, cursor.string()),)
    format: Format = "text"
    for key, value in settings:
        if key == "format":
            match str(value).lower():
                case "text" | "csv" | "binary" as word:
                    format = word
                case other:
                    raise InvalidParameterValue(f'COPY format "{other}" not recognized', position=at)
    return format, tuple(o for o in settings if o[0] != "format")
