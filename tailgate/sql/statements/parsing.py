"""Parses a text into statements. The first words select the parser for the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from tailgate.lake.errors import FeatureNotSupported, SyntaxError_, TailgateError, UndefinedObject
from tailgate.lake.keywords import quoted
from tailgate.lake.types import Type
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parentheses import at_query
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.type_resolution import named_type
from tailgate.sql.grammar.types import type_name
from tailgate.sql.ksqldb.dialect import Dialect, is_ksqldb
from tailgate.sql.ksqldb.tokens import tokens as ksqldb_tokens
from tailgate.sql.lexer.tokens import Token, tokens
from tailgate.sql.plpgsql import functions
from tailgate.sql.plpgsql.nodes import Block
from tailgate.sql.plpgsql.parser import parse_block
from tailgate.sql.statements import ksqldb
from tailgate.sql.statements.kinds import parser_at
from tailgate.sql.statements.parsers import writes
from tailgate.sql.statements.parsers.clauses import select
from tailgate.sql.statements.parsers.tables.create_table_as import with_new_table
from tailgate.sql.statements.parsers.unsupported import refuse
from tailgate.sql.statements.queries import Select
from tailgate.sql.statements.session_statements import CreateTemporaryFunction, Do, Execute
from tailgate.sql.statements.statement import Prepare, Statement
from tailgate.sql.statements.values import Empty, StatementText


def _prepare(cursor: Parser) -> Prepare:
    """Parses PREPARE name [(types)] AS statement."""
    cursor.advance()
    if cursor.at_word("transaction"):
        raise FeatureNotSupported("PREPARE TRANSACTION is not supported", position=cursor.position)
    this = name(cursor).name
    types: list[tuple[int, Type]] = []
    if cursor.accept("("):
        types = cursor.listed(lambda cursor: (cursor.position, named_type(type_name(cursor))))
        cursor.expect(")")
    cursor.expect_word("as")
    start = cursor.position
    inner = statement(cursor)
    if isinstance(inner, (Empty, Prepare, Execute, Do)):
        raise cursor.error(next(t for t in cursor.tokens if t.position == start))
    text = cursor.since(start)
    return Prepare(this, tuple(type for _, type in types), inner, text, tuple(at for at, _ in types))


def _do(cursor: Parser) -> Do:
    """Parses DO [LANGUAGE language] 'code'. Positions of errors are in the statement if the code is quoted by dollars."""
    start = cursor.advance()
    code, language = None, "plpgsql"
    while not (cursor.finished or cursor.at(";")):
        at = cursor.token
        if cursor.accept_word("language"):
            language = cursor.advance().value if cursor.token.kind == "string" else name(cursor).name
        elif at.kind != "string":
            raise cursor.error()
        elif code is not None:
            raise SyntaxError_("conflicting or redundant options", position=at.position)
        else:
            code = cursor.advance()
    if code is None:
        raise cursor.error() if cursor.tokens[cursor.index - 1] is start else SyntaxError_("no inline code specified")
    if language != "plpgsql":
        if language in ("c", "internal", "sql"):
            raise FeatureNotSupported(f'language "{language}" does not support inline code execution')
        raise UndefinedObject(f'language "{language}" does not exist')
    return Do(_block(code, ()))


def _temporary_function(cursor: Parser) -> CreateTemporaryFunction:
    """Parses CREATE FUNCTION of the schema pg_temp in PL/pgSQL."""
    header = functions.parse(cursor)
    block = _block(header.code, [output.name for output in header.outputs])
    return CreateTemporaryFunction(header.name, header.outputs, block, header.replace)


def _block(code: Token, parameters: Collection[str]) -> Block:
    """Parses code in PL/pgSQL. Positions of errors are in the statement if the code is quoted by dollars."""
    try:
        return parse_block(code.value, _check_inner, parameters)
    except TailgateError as error:
        if error.position is not None:
            error.position = code.position + code.text.index(code.value) + error.position if code.text.startswith("$") else None
        raise


def _check_inner(text: str) -> bool:
    """Parses a statement in the code of DO. Returns whether it is a query."""
    return isinstance(parse(text, "postgresql"), Select)


def split(text: str, dialect: Dialect = "auto") -> tuple[StatementText, ...]:
    """Splits a text at semicolons outside of quotes and comments. Leaves out empty statements.

    A text that PostgreSQL's lexical rules do not allow is split by ksqlDB's, if these allow it.

    >>> [s.text for s in split("SELECT ';'; -- one; two\\nSHOW ALL;")]
    ["SELECT ';'", 'SHOW ALL']
    """
    statements: list[StatementText] = []
    row: list[Token] = []
    for token in _tokens(text, dialect):
        if token.kind == "end" or (token.kind == "operator" and token.value == ";"):
            if row:
                statements.append(StatementText(text[row[0].position : row[-1].end], row[0].position, token.kind != "end"))
            row = []
        else:
            row.append(token)
    if row:
        statements.append(StatementText(text[row[0].position :], row[0].position))
    return tuple(statements)


def _tokens(text: str, dialect: Dialect) -> tuple[Token, ...]:
    """Returns the tokens of a text that may have statements of both dialects."""
    row = tokens(text)
    if dialect == "postgresql" or (row[-1].kind == "end" and "`" not in text):
        return row
    other = ksqldb_tokens(text)
    return other if other[-1].kind == "end" else row


def names_database(text: str, database: str) -> bool:
    """Returns whether names in the text may have this database as their first part."""
    return f"{database}." in text or f'{database}".' in text


def without_database(text: str, database: str) -> str:
    """Returns the text with spaces in place of the current database in names like database.schema.relation.

    Positions in the text stay the same. Names in another database remain, and are refused.

    >>> without_database('SELECT * FROM "shop".public.t, other.public.t', "shop")
    'SELECT * FROM        public.t, other.public.t'
    >>> without_database("COMMENT ON COLUMN shop.t.a IS ''", "shop")  # the schema shop
    "COMMENT ON COLUMN shop.t.a IS ''"
    """
    row = tokens(text)
    for i in range(len(row) - 4):
        first, dot, _, second_dot, _ = row[i : i + 5]
        is_name = first.kind in ("word", "quoted") and first.value == database
        previous, is_longer = row[i - 1].value if i else "", i + 5 < len(row) and row[i + 5].value == "."
        if is_name and dot.value == second_dot.value == "." and previous != "." and (previous != "column" or is_longer):
            text = text[: first.position] + " " * (dot.end - first.position) + text[dot.end :]
    return text


def parse(text: str | StatementText, dialect: Dialect = "auto") -> Statement:
    """Parses a text with one statement, optionally followed by semicolons.

    Positions in errors count from the start of this text. Returns Empty for a blank text.

    >>> parse("TAIL v WITH (progress)").progress
    True
    """
    if isinstance(text, StatementText):
        text = text.text + ";" * text.terminated
    if is_ksqldb(text, dialect):
        return ksqldb.parse(text)
    cursor = Parser(text)
    while cursor.accept(";"):
        pass
    if cursor.tokens[cursor.index].kind == "end":
        return Empty()
    result = statement(cursor)
    if not cursor.at(";"):
        cursor.finish()
    while cursor.accept(";"):
        pass
    if not cursor.finished:
        raise SyntaxError_("cannot insert multiple commands into a prepared statement", position=cursor.position)
    return result


def with_session_roles(text: str, current_user: str, session_user: str, others: Mapping[str, str] = MappingProxyType({})) -> str:
    """Returns the text of a statement with the names of the session's roles in place of CURRENT_USER and the like.

    `others`: other names of roles, by the name in the text.

    >>> with_session_roles("GRANT SELECT ON t TO CURRENT_USER, SESSION_USER", "ann", "Bob")
    'GRANT SELECT ON t TO ann, "Bob"'
    """
    cursor = Parser(text)
    statement(cursor)
    words = {"current_user": current_user, "current_role": current_user, "session_user": session_user}
    for token in sorted(cursor.role_names.values(), key=lambda token: -token.position):
        role = (words if token.kind == "word" and token.value in words else others).get(token.value)
        if role is not None:
            text = text[: token.position] + quoted(role) + text[token.end :]
    return text


def statement(cursor: Parser) -> Statement:
    """Parses the statement at the cursor."""
    token = cursor.token
    if cursor.at_word("with") and (written := writes.after_with(cursor)) is not None:
        return with_new_table(written)
    if at_query(cursor) or cursor.at("("):
        return with_new_table(select(cursor))
    if token.kind == "word" and token.value == "prepare":
        return _prepare(cursor)
    if token.kind == "word" and token.value == "do":
        return _do(cursor)
    if functions.begins(cursor):
        return _temporary_function(cursor)
    parser = parser_at(cursor)
    if parser is None:
        refuse(cursor)
        raise cursor.error()
    return parser(cursor)
