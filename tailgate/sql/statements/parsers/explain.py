"""Parses EXPLAIN.

Source: PostgreSQL 15, "EXPLAIN"; src/backend/commands/explain.c (ExplainQuery); src/backend/commands/define.c (defGetBoolean).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, SyntaxError_
from tailgate.sql.grammar.parentheses import at_query
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.definitions import CreateView
from tailgate.sql.statements.parsers.clauses import execute, options, relation_name, select
from tailgate.sql.statements.parsers.cursors import declare, subscribe, tail
from tailgate.sql.statements.parsers.kafka.sources_and_sinks import create_sink
from tailgate.sql.statements.parsers.objects import VIEWS, create
from tailgate.sql.statements.parsers.tables.create_table import create_table
from tailgate.sql.statements.parsers.tables.create_table_as import with_new_table
from tailgate.sql.statements.parsers.writes import write
from tailgate.sql.statements.queries import Explain, ExplainFormat, Select, Tail
from tailgate.sql.statements.session_statements import Execute
from tailgate.sql.statements.values import OptionValue
from tailgate.sql.statements.writes import CreateTableAs, Delete, Insert, Merge, Update, WithWrites

BOOLEANS: Mapping[str, bool] = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
FORMATS: tuple[ExplainFormat, ...] = ("text", "json", "xml", "yaml")
OPTIONS = ("analyze", "verbose", "costs", "settings", "buffers", "wal", "timing", "summary", "format")


def explain(cursor: Parser) -> Explain:
    """Parses EXPLAIN."""
    start = cursor.position
    cursor.expect_word("explain")
    settings: dict[str, OptionValue] = {}
    listed = cursor.index
    if cursor.at("(") and not at_query(cursor):
        settings = dict(options(cursor))
    places = {token.value: token.position for token in reversed(cursor.tokens[listed : cursor.index])}
    if (schema := _schema(cursor)) is not None:
        return schema
    analyze = _boolean(settings, "analyze", False) | (cursor.any_word("analyze", "analyse") is not None)
    if unknown := next((name for name in settings if name not in OPTIONS), None):
        raise SyntaxError_(f'unrecognized EXPLAIN option "{unknown}"', position=places.get(unknown))
    format = _format(settings, places.get("format"))
    for name in OPTIONS[1:-1]:
        _boolean(settings, name, False)
    timing, summary = _boolean(settings, "timing", analyze), _boolean(settings, "summary", analyze)
    for name in ("wal", "timing"):
        if _boolean(settings, name, False) and not analyze:
            raise InvalidParameterValue(f"EXPLAIN option {name.upper()} requires ANALYZE")
    cursor.accept_word("verbose")
    cursor.any_word("optimized", "physical", "decorrelated", "raw")
    if cursor.accept_word("plan"):
        cursor.accept_word("for")
    is_text = format == "text"
    if is_text and (cursor.accept_word("materialized", "view") or (not analyze and cursor.accept_word("view"))):
        return Explain(relation_name(cursor), analyze)
    target: CreateView | CreateTableAs | Select | Tail | Insert | Update | Delete | Merge | WithWrites | Execute
    if cursor.at_word("execute"):
        target = execute(cursor)
    elif cursor.at_word("declare"):
        target = _declared(cursor, start, "" if not analyze and is_text else "ANALYZE" if is_text else f"FORMAT {format.upper()}")
    elif (created := _new_table(cursor)) is not None:
        target = created
    elif (written := write(cursor)) is not None:
        target = with_new_table(written)
    elif analyze or not is_text:
        target = select(cursor) if at_query(cursor) else _refused(cursor, "ANALYZE" if is_text else f"FORMAT {format.upper()}", start)
    elif cursor.at_word("create"):
        creation = create(cursor) if any(cursor.at_word("create", *words) for words in VIEWS) else None
        if not isinstance(creation, CreateView):
            raise FeatureNotSupported("EXPLAIN of CREATE SOURCE and CREATE SINK is not supported", position=start)
        target = creation
    elif cursor.at_word("tail"):
        target = tail(cursor)
    elif cursor.at_word("subscribe"):
        target = subscribe(cursor)
    else:
        target = select(cursor)
    if isinstance(target, Select):
        target = with_new_table(target)
    if analyze and isinstance(target, CreateTableAs):
        what = "SELECT INTO" if target.select_into else "CREATE TABLE AS"
        raise FeatureNotSupported(f"EXPLAIN (ANALYZE) of {what} is not supported", hint="EXPLAIN its query.", position=start)
    return Explain(target, analyze, format=format, timing=timing, summary=summary)


def _declared(cursor: Parser, start: int, option: str) -> Select | Tail:
    """Parses DECLARE and returns the statement of the cursor. `option`: one that TAIL does not have, or ''."""
    statement = declare(cursor).statement
    if isinstance(statement, Select) or (isinstance(statement, Tail) and not option):
        return statement
    what = "a cursor of TAIL" if isinstance(statement, Tail) else "this cursor"
    raise FeatureNotSupported(f"EXPLAIN ({option or 'DECLARE'}) of {what} is not supported", position=start)


def _new_table(cursor: Parser) -> CreateTableAs | None:
    """Parses CREATE TABLE … AS, if CREATE TABLE follows."""
    begin = cursor.index
    if not cursor.accept_word("create"):
        return None
    cursor.any_word("local", "global")
    temporary = cursor.any_word("temporary", "temp", "unlogged") in ("temporary", "temp")
    if not cursor.accept_word("table"):
        cursor.index = begin
        return None
    created = create_table(cursor, temporary=temporary)
    if not isinstance(created, CreateTableAs):
        raise cursor.error()
    return created


def _refused(cursor: Parser, option: str, start: int) -> Select:
    """Raises 0A000 for EXPLAIN with an option that only queries have."""
    what = "a view" if cursor.any_word("materialized", "view") is not None else cursor.token.text.upper()
    hint = "EXPLAIN ANALYZE MATERIALIZED VIEW says what a view costs." if what in ("a view", "CREATE") else "EXPLAIN its query."
    raise FeatureNotSupported(f"EXPLAIN ({option}) of {what} is not supported", hint=hint, position=start)


def _boolean(settings: Mapping[str, OptionValue], name: str, default: bool) -> bool:
    """Returns the value of an option. Raises 42601 if it is not a Boolean value."""
    value = settings.get(name, default)
    parsed = BOOLEANS.get(str(value).lower())
    if parsed is None:
        raise SyntaxError_(f"{name} requires a Boolean value")
    return parsed


def _format(settings: Mapping[str, OptionValue], at: int | None) -> ExplainFormat:
    """Returns the value of FORMAT. Raises 22023."""
    value = str(settings.get("format", "text")).lower()
    for format in FORMATS:
        if value == format:
            return format
    raise InvalidParameterValue(f'unrecognized value for EXPLAIN option "format": "{value}"', position=at)


def _schema(cursor: Parser) -> Explain | None:
    """Parses [KEY | VALUE] SCHEMA [AS JSON] FOR {SINK name | CREATE SINK …}, if it follows."""
    part: Literal["key", "value"] = "value"
    if cursor.at_word("key", "schema"):
        cursor.advance()
        part = "key"
    elif cursor.at_word("value", "schema"):
        cursor.advance()
    if not cursor.accept_word("schema"):
        return None
    cursor.accept_word("as", "json")
    cursor.expect_word("for")
    if cursor.accept_word("sink"):
        return Explain(relation_name(cursor), schema=part)
    cursor.expect_word("create", "sink")
    return Explain(create_sink(cursor), schema=part)
