"""Parses CREATE FUNCTION, DROP FUNCTION, and names of functions with argument types.

Only LANGUAGE SQL with one query is supported. The body is parsed here, so its errors have a position in
the statement.

Source: PostgreSQL 15, "CREATE FUNCTION"; gram.y CreateFunctionStmt, func_arg; src/backend/commands/functioncmds.c.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from tailgate.lake import keywords
from tailgate.lake.catalog.items import Volatility
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, InvalidFunctionDefinition, SyntaxError_, TailgateError, UndefinedObject
from tailgate.lake.types import Type
from tailgate.sql.grammar.names import is_name, name, place
from tailgate.sql.grammar.parentheses import at_query
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.type_resolution import named_type, resolve
from tailgate.sql.grammar.types import type_name
from tailgate.sql.lexer.tokens import Token
from tailgate.sql.statements.definitions import AlterFunction, CreateFunction, DropFunction, FunctionArgument, FunctionName
from tailgate.sql.statements.parsers.clauses import query, relation_name
from tailgate.sql.statements.parsers.roles.roles import role_name
from tailgate.sql.statements.values import QueryText

LANGUAGES = "plpgsql c internal plpython3u plpythonu plperl plperlu pltcl pltclu plv8 java javascript python".split()
UNKNOWN_CLAUSES = ("leakproof", "security", "external", "set", "window", "transform", "support")
MODES = ("in", "out", "inout", "variadic")
# first words of types with several words; any other word before a type is a name
TYPE_WORDS = {
    "double": ("precision",), "character": ("varying",), "char": ("varying",), "national": ("character", "char"), "bit": ("varying",),
    "time": ("with", "without"), "timestamp": ("with", "without"), "interval": ("year", "month", "day", "hour", "minute", "second"),
}  # fmt: skip
NAMES = keywords.RESERVED | keywords.COLUMN  # key words that cannot be names of arguments
RESULTLESS = ("void", "trigger", "event_trigger", "record")
VOLATILITIES: dict[str, Volatility] = {"immutable": "immutable", "stable": "stable", "volatile": "volatile"}
LAST_ONE = "A function is one query: SELECT, VALUES or WITH."


@dataclass
class FunctionClauses:
    """The clauses that are parsed so far. Each may occur once."""

    language: str | None = None
    volatility: Volatility | None = None
    strict: bool | None = None
    body: Token | None = None
    returned: QueryText | None = None
    words: set[str] = field(default_factory=set)

    def once(self, clause: str, at: int) -> None:
        """Raises 42601 if the clause was already given."""
        if clause in self.words:
            raise SyntaxError_("conflicting or redundant options", position=at)
        self.words.add(clause)


def create_function(cursor: Parser) -> CreateFunction:
    """Parses [OR REPLACE] FUNCTION …, after CREATE."""
    replace = cursor.accept_word("or", "replace")
    cursor.expect_word("function")
    this = relation_name(cursor)
    arguments = _arguments(cursor)
    returns: Type | None = None
    table: tuple[FunctionArgument, ...] | None = None
    row: Name | None = None
    many = False
    if cursor.accept_word("returns"):
        if cursor.at_word("table") and cursor.at("(", 1):
            cursor.advance()
            table, many = _columns(cursor), True
        else:
            many = cursor.accept_word("setof")
            returns, row = _result(cursor, many)
    clauses = FunctionClauses()
    while _clause(cursor, clauses):
        pass
    _check(clauses, this)
    if returns is None and table is None and row is None:
        raise InvalidFunctionDefinition("function result type must be specified")
    body = clauses.returned or _body(clauses.body)
    return CreateFunction(this, arguments, returns, table, row, many, body, clauses.volatility or "volatile", bool(clauses.strict), replace)


def _arguments(cursor: Parser) -> tuple[FunctionArgument, ...]:
    """Parses ( argument, … ).

    Raises 42P13 for repeated names and for arguments without a needed default.
    """
    items: list[FunctionArgument] = []
    cursor.expect("(")
    while not cursor.at(")"):
        items.append(_argument(cursor))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    for i, argument in enumerate(items):
        if argument.variadic and i < len(items) - 1:
            raise InvalidFunctionDefinition("VARIADIC parameter must be the last input parameter")
        if argument.name and any(a.name == argument.name for a in items[:i]):
            raise InvalidFunctionDefinition(f'parameter name "{argument.name}" used more than once')
        if argument.default is None and i and items[i - 1].default is not None:
            raise InvalidFunctionDefinition("input parameters after one with a default value must also have defaults")
    return tuple(items)


def _argument(cursor: Parser) -> FunctionArgument:
    """Parses [mode] [name] type [{DEFAULT | =} expression]."""
    at = cursor.position
    mode = cursor.any_word(*MODES)
    if mode in ("out", "inout"):
        hint = "Use RETURNS TABLE (…) for several columns."
        raise FeatureNotSupported(f"{mode.upper()} parameters are not supported", hint=hint, position=at)
    argument_name = ""
    if _is_named(cursor):
        argument_name = name(cursor, NAMES).name
        cursor.accept_word("in")
    type = _named_type(cursor)
    if mode == "variadic" and not type.is_array:
        raise InvalidFunctionDefinition("VARIADIC parameter must be an array")
    default: str | None = None
    if cursor.accept_word("default") or cursor.accept("="):
        start = cursor.position
        cursor.expression()
        default = cursor.since(start)
    return FunctionArgument(argument_name, type, default, mode == "variadic")


def _is_named(cursor: Parser) -> bool:
    """Returns whether the argument begins with a name, and not with its type."""
    token, following = cursor.token, cursor.peek()
    if not is_name(token, NAMES):
        return False
    if token.kind == "word" and following.kind == "word" and following.value in TYPE_WORDS.get(token.value, ()):
        return False
    return following.kind == "quoted" or (following.kind == "word" and following.value != "default")


def _type(cursor: Parser) -> Type:
    """Parses a type and drops its modifiers, which functions ignore."""
    type = resolve(type_name(cursor))
    return Type(type.name, is_array=type.is_array)


def _named_type(cursor: Parser) -> Type:
    """Does the same as `_type`. A name that is not one of a built-in type is looked up later."""
    type = named_type(type_name(cursor))
    return Type(type.name, is_array=type.is_array, enum=type.enum)


def _columns(cursor: Parser) -> tuple[FunctionArgument, ...]:
    """Parses ( name type, … ) of RETURNS TABLE."""
    items = []
    cursor.expect("(")
    while True:
        items.append(FunctionArgument(name(cursor, NAMES).name, _named_type(cursor)))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(items)


def _result(cursor: Parser, many: bool) -> tuple[Type | None, Name | None]:
    """Parses RETURNS. Returns the type, or with `many` (SETOF) the relation whose rows are returned."""
    at, index = cursor.position, cursor.index
    if (word := cursor.any_word(*RESULTLESS)) is not None:
        hint = "Use RETURNS TABLE (…)." if word == "record" else None
        raise FeatureNotSupported(f"functions that return {word} are not supported", hint=hint, position=at)
    type = _named_type(cursor)
    if type.enum is None or not many or type.is_array:
        return type, None
    cursor.index = index
    return None, relation_name(cursor)


def _clause(cursor: Parser, clauses: FunctionClauses) -> bool:
    """Parses one clause after RETURNS into `clauses`. Returns False if there is none."""
    at = cursor.position
    if cursor.accept_word("language"):
        clauses.once("language", at)
        clauses.language = cursor.string().lower() if cursor.token.kind == "string" else name(cursor).name
    elif (word := cursor.any_word(*VOLATILITIES)) is not None:
        clauses.once("volatility", at)
        clauses.volatility = VOLATILITIES[word]
    elif cursor.accept_word("strict") or cursor.accept_word("returns", "null", "on", "null", "input"):
        clauses.once("strict", at)
        clauses.strict = True
    elif cursor.accept_word("called", "on", "null", "input"):
        clauses.once("strict", at)
        clauses.strict = False
    elif cursor.accept_word("parallel"):
        clauses.once("parallel", at)
        name(cursor)  # ignored
    elif cursor.any_word("cost", "rows") is not None:
        if cursor.advance().kind not in ("integer", "decimal"):
            raise cursor.error(cursor.peek(-1))
    elif (
        cursor.accept_word("not", "leakproof")
        or cursor.accept_word("security", "invoker")
        or cursor.accept_word("external", "security", "invoker")
    ):
        pass
    elif cursor.token.kind == "word" and cursor.token.value in UNKNOWN_CLAUSES:
        raise FeatureNotSupported(f"{cursor.token.value.upper()} of a function is not supported", position=at)
    elif cursor.accept_word("as"):
        clauses.once("as", at)
        if cursor.token.kind != "string":
            raise cursor.error()
        clauses.body = cursor.advance()
        if cursor.at(","):
            raise FeatureNotSupported("functions in object files are not supported", position=at)
    elif cursor.accept_word("return"):
        start = cursor.position
        tree = exp.Select(expressions=[cursor.expression()])
        clauses.returned = QueryText("SELECT " + cursor.since(start), start - len("SELECT "), tree)
    elif cursor.at_word("begin", "atomic"):
        raise FeatureNotSupported("BEGIN ATOMIC is not supported", hint="Write RETURN expression, or AS $$ SELECT … $$.", position=at)
    else:
        return False
    return True


def _check(clauses: FunctionClauses, this: Name) -> None:
    """Raises an error unless the function has exactly one body, in LANGUAGE SQL."""
    language = clauses.language
    if language is None and clauses.returned is None:
        raise InvalidFunctionDefinition("no language specified")
    if language not in (None, "sql"):
        if language in LANGUAGES:
            raise FeatureNotSupported(f"LANGUAGE {language} is not supported", hint="Functions are queries: LANGUAGE SQL.")
        raise UndefinedObject(f'language "{language}" does not exist')
    if clauses.body is not None and clauses.returned is not None:
        raise InvalidFunctionDefinition("duplicate function body specified")
    if clauses.body is None and clauses.returned is None:
        raise InvalidFunctionDefinition("no function body specified")


def _body(token: Token | None) -> QueryText:
    """Parses the query in a quoted body.

    Errors and tree nodes have positions in the statement, unless the string contains escapes or doubled
    quotes.
    """
    assert token is not None
    start = token.position + (token.text.index("$", 1) + 1 if token.text[0] == "$" else 1)
    exact = token.text[start - token.position :].startswith(token.value)
    try:
        text = _query(token.value)
    except TailgateError as error:
        error.position = error.position + start if exact and error.position is not None else None
        raise
    for node in text.tree.walk():
        if (at := node.meta.pop("position", None)) is not None and exact:
            place(node, at + start)
    return QueryText(text.text, start + text.offset, text.tree)


def _query(text: str) -> QueryText:
    """Parses a body, which must be exactly one query."""
    cursor = Parser(text)
    if cursor.token.kind == "end":
        raise FeatureNotSupported("a function without a query is not supported", hint=LAST_ONE)
    if not at_query(cursor) and not cursor.at("("):
        if cursor.any_word("insert", "update", "delete", "create", "drop", "truncate", "begin", "set") is not None:
            raise FeatureNotSupported("a function that changes something is not supported", hint=LAST_ONE, position=0)
        raise cursor.error()
    body = query(cursor)
    while cursor.accept(";"):
        pass
    if not cursor.finished:
        raise FeatureNotSupported("a function of several statements is not supported", hint=LAST_ONE, position=cursor.position)
    return body


# --- names of functions -------------------------------------------------------------------------------------------------------


def function_name(cursor: Parser) -> FunctionName:
    """Parses name [( [[mode] [name] type, …] )]."""
    this = relation_name(cursor)
    if not cursor.at("("):
        return FunctionName(this)
    return FunctionName(this, tuple(a.type for a in _arguments(cursor)))


def alter_function(cursor: Parser) -> AlterFunction | None:
    """Parses FUNCTION name [(types)] OWNER TO role, after ALTER. Returns None and consumes nothing for other forms of ALTER."""
    start = cursor.index
    if not cursor.accept_word("function"):
        return None
    function = function_name(cursor)
    if not cursor.accept_word("owner", "to"):
        cursor.index = start
        return None
    return AlterFunction(function, role_name(cursor).name)


def drop_function(cursor: Parser) -> DropFunction:
    """Parses the rest of DROP FUNCTION."""
    exists = cursor.accept_word("if", "exists")
    functions = cursor.listed(function_name)
    cascade = cursor.any_word("cascade", "restrict") == "cascade"
    return DropFunction(tuple(functions), exists, cascade)
