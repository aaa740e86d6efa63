"""Parses clauses that several statements share: names, options, queries with their text, times."""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import DatatypeMismatch, InvalidParameterValue
from tailgate.lake.types import Type
from tailgate.sql.grammar import names
from tailgate.sql.grammar.parentheses import at_query
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.queries import Select
from tailgate.sql.statements.session_statements import Execute
from tailgate.sql.statements.values import AtLeast, Options, OptionValue, QueryText, SecretName, Time
from tailgate.sql.statements.writes import Expression


def relation_name(cursor: Parser) -> Name:
    """Parses [schema.]name."""
    at = cursor.position
    table = names.relation(cursor)
    return Name(table.name, table.text("db") or None, at)


def column_names(cursor: Parser) -> tuple[str, ...]:
    """Parses ( name, … )."""
    return tuple(i.name for i in names.names(cursor))


def if_not_exists(cursor: Parser) -> bool:
    """Parses [IF NOT EXISTS]. Returns whether it is present."""
    return cursor.accept_word("if", "not", "exists")


def collation(cursor: Parser, type: Type | None = None, at: int | None = None) -> str:
    """Parses [COLLATE name] of a column of a type. Returns the name, if any. Raises 42804, 42704, 0A000, with the position `at`."""
    if not cursor.accept_word("collate"):
        return ""
    name = names.name(cursor).name
    while cursor.accept("."):
        name = names.name(cursor).name
    if type is not None and type.facts.category != "S":
        raise DatatypeMismatch(f"collations are not supported by type {type}", position=at)
    names.check_collation(name, at)
    return name


def options(cursor: Parser, *, parameters: bool = False) -> Options:
    """Parses ( name [= value], … ).

    A name may have several words (`RETAIN HISTORY FOR '1h'`). The value of a single word is True. Of several
    words without a value, the last one is the value (`FORMAT csv`). `parameters`: options of one word are storage parameters, with
    the text of their value, 'true' if there is none.
    """
    cursor.expect("(")
    pairs: list[tuple[str, OptionValue]] = []
    while True:
        words = [_option_word(cursor)]
        while cursor.token.kind == "word" and not (
            cursor.at_word("true") or cursor.at_word("false") or _at_secret(cursor) or _at_map(cursor)
        ):
            words.append(_option_word(cursor))
        value: OptionValue = True
        first = cursor.index + cursor.at("=")
        if cursor.accept("=") or not (cursor.at(",") or cursor.at(")")):
            value = option_value(cursor)
        elif len(words) > 1:
            value = words.pop()
        if parameters and len(words) == 1:
            value = "true" if cursor.index == first else _parameter_text(cursor, first)
        pairs.append((" ".join(words), value))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(pairs)


def _parameter_text(cursor: Parser, first: int) -> str:
    """Returns the text of the value that begins at a token and ends before the current one."""
    token = cursor.tokens[first]
    return token.value if token.kind in ("string", "word", "quoted") else cursor.since(token.position)


def with_options(cursor: Parser, *, parameters: bool = False) -> tuple[Options, tuple[int, int]]:
    """Parses [WITH (options)]. Returns the options, and begin and end of the clause.

    Without a clause, begin and end are equal: it could be inserted there.
    """
    begin = cursor.tokens[cursor.index - 1].end
    if not cursor.accept_word("with"):
        return (), (begin, begin)
    pairs = options(cursor, parameters=parameters)
    return pairs, (begin, cursor.tokens[cursor.index - 1].end)


def _at_secret(cursor: Parser) -> bool:
    return cursor.at_word("secret") and cursor.peek().kind in ("word", "quoted")


def _at_map(cursor: Parser) -> bool:
    return cursor.at_word("map") and cursor.at("[", 1)


def _option_word(cursor: Parser) -> str:
    if cursor.token.kind not in ("word", "quoted", "string"):
        raise cursor.error()
    word = cursor.advance().value
    while cursor.at(".") and cursor.peek().kind in ("word", "quoted"):
        cursor.advance()
        word += "." + cursor.advance().value
    return word.lower()


def option_value(cursor: Parser) -> OptionValue:
    """Parses a value: a number, string, word, list, MAP[…] or SECRET name."""
    token = cursor.token
    if _at_secret(cursor):
        cursor.advance()
        return SecretName(relation_name(cursor))
    if _at_map(cursor):
        cursor.advance()
        return _map(cursor)
    if cursor.accept("(") or cursor.accept("["):
        closing = ")" if token.value == "(" else "]"
        items: list[OptionValue] = []
        while not cursor.at(closing):
            items.append(option_value(cursor))
            if not cursor.accept(","):
                break
        cursor.expect(closing)
        return tuple(items)
    if cursor.accept("*"):
        return "*"
    negative = cursor.accept("-")
    token = cursor.token
    if token.kind == "integer":
        return -cursor.integer() if negative else cursor.integer()
    if token.kind == "decimal":
        return -float(cursor.advance().value) if negative else float(cursor.advance().value)
    if negative or token.kind not in ("word", "quoted", "string"):
        raise cursor.error()
    value = cursor.advance().value
    if token.kind == "word" and value in ("true", "on", "false", "off"):
        return value in ("true", "on")
    return value


def signed_integer(cursor: Parser, largest: int | None = None) -> int:
    """Parses an integer with an optional sign. Raises 42601 if the number without its sign exceeds `largest`."""
    sign = -1 if cursor.accept("-") else 1
    if sign > 0:
        cursor.accept("+")
    token, number = cursor.token, cursor.integer()
    if largest is not None and number > largest:
        raise cursor.error(token)
    return sign * number


def boolean(value: object, key: str, position: int) -> bool:
    """Returns the value of a boolean option. Raises 22023 if it is not a boolean."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "t", "on", "yes", "1"):
        return True
    if isinstance(value, str) and value.lower() in ("false", "f", "off", "no", "0"):
        return False
    raise InvalidParameterValue(f"invalid {key.upper()}: must be a boolean", position=position)


def _map(cursor: Parser) -> OptionValue:
    """Parses ['key' => value, …], after MAP. Returns pairs."""
    cursor.expect("[")
    entries: list[OptionValue] = []
    while not cursor.at("]"):
        key = cursor.string()
        cursor.expect("=>")
        entries.append((key, option_value(cursor)))
        if not cursor.accept(","):
            break
    cursor.expect("]")
    return tuple(entries)


def query(cursor: Parser) -> QueryText:
    """Parses a query. Returns its text and tree."""
    if not at_query(cursor) and not cursor.at("("):
        raise cursor.error()
    start = cursor.position
    tree = cursor.query()
    return QueryText(cursor.since(start), start, tree)


def select(cursor: Parser) -> Select:
    """Parses query [AS OF time]."""
    text = query(cursor)
    return Select(text, as_of(cursor) if cursor.accept_word("as", "of") else None)


def execute(cursor: Parser) -> Execute:
    """Parses EXECUTE name [(arguments)]."""
    cursor.advance()
    this = names.name(cursor).name
    if not cursor.at("("):
        return Execute(this)
    start = cursor.advance().end
    if cursor.accept(")"):
        return Execute(this)
    arguments = cursor.expressions()
    end = cursor.expect(")").position
    return Execute(this, QueryText("SELECT " + cursor.text[start:end], start - len("SELECT "), exp.Select(expressions=arguments)))


def where(cursor: Parser) -> Expression | None:
    """Parses [WHERE condition]."""
    if not cursor.accept_word("where"):
        return None
    at = cursor.position
    return Expression(cursor.expression(), cursor.since(at))


def as_of(cursor: Parser) -> Time:
    """Parses [AT LEAST] time, after AS OF."""
    return AtLeast(time(cursor)) if cursor.accept_word("at", "least") else time(cursor)


def time(cursor: Parser) -> int | QueryText:
    """Parses a time: an integer in milliseconds, or an expression, returned as a query with one row."""
    token = cursor.token
    if token.kind == "integer" and (cursor.peek().kind in ("end", "word") or cursor.at(")", 1) or cursor.at(";", 1)):
        return cursor.integer()
    start = cursor.position
    tree = exp.Select(expressions=[cursor.expression()])
    return QueryText("SELECT " + cursor.since(start), start - len("SELECT "), tree)


def setting_name(cursor: Parser) -> str:
    """Parses the name of a setting, name or name.name. Returns it in lower case."""
    return str(relation_name(cursor)).lower()


def assigned_values(cursor: Parser) -> tuple[str, ...]:
    """Parses {= | TO} {value, … | DEFAULT}, after the name of a setting. Returns the values as text, () for DEFAULT."""
    if not cursor.accept("=") and not cursor.accept_word("to"):
        raise cursor.error()
    return () if cursor.accept_word("default") else tuple(cursor.listed(setting_value))


def setting_value(cursor: Parser) -> str:
    """Parses a value of SET. Returns it as text."""
    if cursor.at("+") or cursor.at("-"):
        sign = cursor.advance().value
        if cursor.token.kind not in ("integer", "decimal"):
            raise cursor.error()
        return (sign if sign == "-" else "") + cursor.advance().value
    token = cursor.token
    if token.kind not in ("word", "quoted", "string", "integer", "decimal"):
        raise cursor.error()
    return cursor.advance().value
