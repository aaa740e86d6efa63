"""Parses a statement of ksqlDB into its value.

Source: ksqlDB 0.29, documentation, "ksqlDB SQL reference".
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from tailgate.lake.errors import InvalidParameterValue
from tailgate.lake.errors import SyntaxError_ as SyntaxError
from tailgate.sql.ksqldb import statements as s
from tailgate.sql.ksqldb.expression_parser import KsqldbCursor, expression, type_name
from tailgate.sql.ksqldb.expressions import Constant
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.query_parser import duration, query

LISTED = ("properties", "topics", "streams", "tables", "functions", "connectors", "types", "variables", "queries")
EXTENDED = ("topics", "streams", "tables", "queries")


def parse(text: str) -> s.KsqldbStatement:
    """Parses a text with one statement, optionally followed by semicolons. Positions count from the start of the text."""
    cursor = KsqldbCursor(text)
    statement = PARSERS[_words(cursor)](cursor)
    if not cursor.at(";"):
        cursor.finish()
    while cursor.accept(";"):
        pass
    if not cursor.finished:
        raise SyntaxError("cannot insert multiple commands into a prepared statement", position=cursor.position)
    return statement


def _words(cursor: KsqldbCursor) -> tuple[str, ...]:
    """Returns the words that begin a statement, of those in PARSERS."""
    words = [w for w in PARSERS if cursor.at_word(*w)]
    if not words:
        raise cursor.error()
    return max(words, key=len)


# ---- CREATE ----------------------------------------------------------------------------------------------------------------------


def _create(cursor: KsqldbCursor) -> s.CreateItem | s.CreateAs | s.CreateType | s.CreateConnector:
    at = cursor.position
    cursor.expect_word("create")
    if cursor.accept_word("type"):
        absent = _if_not_exists(cursor)
        at = cursor.position
        name = cursor.name()
        cursor.expect_word("as")
        return s.CreateType(name, type_name(cursor), absent, at)
    if cursor.at_word("source", "connector") or cursor.at_word("sink", "connector"):
        return _create_connector(cursor)
    replace = cursor.accept_word("or", "replace")
    source = cursor.accept_word("source")
    type = _item_type(cursor)
    absent = _if_not_exists(cursor)
    name = cursor.name()
    columns = _columns(cursor) if cursor.at("(") else ()
    properties = _properties(cursor) if cursor.accept_word("with") else ()
    if not columns and not source and cursor.accept_word("as"):
        return s.CreateAs(type, name, properties, query(cursor), replace, absent, at)
    return s.CreateItem(type, name, columns, properties, replace, source, absent, at)


def _create_connector(cursor: KsqldbCursor) -> s.CreateConnector:
    source = cursor.any_word("source", "sink") == "source"
    cursor.expect_word("connector")
    absent = _if_not_exists(cursor)
    name = cursor.name()
    cursor.expect_word("with")
    return s.CreateConnector("source" if source else "sink", name, _properties(cursor, folded=False), absent)


def _item_type(cursor: KsqldbCursor) -> s.ItemType:
    if cursor.accept_word("stream"):
        return "stream"
    cursor.expect_word("table")
    return "table"


def _if_not_exists(cursor: KsqldbCursor) -> bool:
    return cursor.accept_word("if", "not", "exists")


def _if_exists(cursor: KsqldbCursor) -> bool:
    return cursor.accept_word("if", "exists")


def _columns(cursor: KsqldbCursor) -> tuple[s.ColumnElement, ...]:
    """Parses (column, …)."""
    cursor.expect("(")
    columns = cursor.listed(_column)
    cursor.expect(")")
    return tuple(columns)


def _column(cursor: KsqldbCursor) -> s.ColumnElement:
    """Parses name type [KEY | PRIMARY KEY | HEADERS | HEADER('name')]."""
    at = cursor.position
    name, type = cursor.name(), type_name(cursor)
    if cursor.accept_word("key"):
        return s.ColumnElement(name, type, "key", position=at)
    if cursor.accept_word("primary", "key"):
        return s.ColumnElement(name, type, "primary key", position=at)
    if cursor.accept_word("headers"):
        return s.ColumnElement(name, type, "headers", position=at)
    if cursor.accept_word("header"):
        cursor.expect("(")
        header = cursor.string()
        cursor.expect(")")
        return s.ColumnElement(name, type, "header", header, at)
    return s.ColumnElement(name, type, position=at)


def _properties(cursor: KsqldbCursor, *, folded: bool = True) -> s.Properties:
    """Parses (name = value, …), after WITH. `folded`: names are in upper case. Raises 22023 for a name that occurs twice."""
    cursor.expect("(")
    properties: dict[str, str | int | float | bool | None] = {}
    while True:
        token = cursor.token
        name = cursor.string() if token.kind == "string" else cursor.name()
        name = name.upper() if folded else name
        if name in properties:
            raise InvalidParameterValue(f'property "{name}" is given twice', position=token.position)
        cursor.expect("=")
        properties[name] = _property_value(cursor)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(properties.items())


def _property_value(cursor: KsqldbCursor) -> str | int | float | bool | None:
    at = cursor.position
    value = expression(cursor)
    if not isinstance(value, Constant):
        raise SyntaxError("the value of a property must be a literal", position=at)
    return float(value.value) if isinstance(value.value, Decimal) else value.value


# ---- INSERT, SELECT, DROP, ALTER ---------------------------------------------------------------------------------------------------


def _insert(cursor: KsqldbCursor) -> s.InsertValues | s.InsertQuery:
    at = cursor.position
    cursor.expect_word("insert", "into")
    name = cursor.name()
    columns: tuple[str, ...] = ()
    if cursor.accept("("):
        columns = tuple(cursor.listed(KsqldbCursor.name))
        cursor.expect(")")
    if cursor.accept_word("values"):
        cursor.expect("(")
        values = cursor.listed(expression)
        cursor.expect(")")
        return s.InsertValues(name, columns, tuple(values), at)
    if columns:
        raise cursor.error()
    properties = _properties(cursor) if cursor.accept_word("with") else ()
    return s.InsertQuery(name, query(cursor), properties, at)


def _select(cursor: KsqldbCursor) -> s.PushQuery:
    return s.PushQuery(query(cursor))


def _drop(cursor: KsqldbCursor) -> s.DropItem | s.DropType | s.DropConnector:
    cursor.expect_word("drop")
    if cursor.accept_word("type"):
        exists, at = _if_exists(cursor), cursor.position
        return s.DropType(cursor.name(), exists, at)
    if cursor.accept_word("connector"):
        exists = _if_exists(cursor)
        return s.DropConnector(cursor.name(), exists)
    type = _item_type(cursor)
    exists = _if_exists(cursor)
    at = cursor.position
    name = cursor.name()
    return s.DropItem(type, name, exists, cursor.accept_word("delete", "topic"), at)


def _alter(cursor: KsqldbCursor) -> s.AddColumns | s.SetProperty:
    cursor.expect_word("alter")
    if cursor.accept_word("system"):
        return _set(cursor, system=True)
    type = _item_type(cursor)
    at = cursor.position
    name = cursor.name()
    columns = cursor.listed(_added)
    return s.AddColumns(type, name, tuple(columns), at)


def _added(cursor: KsqldbCursor) -> s.ColumnElement:
    """Parses ADD [COLUMN] name type."""
    cursor.expect_word("add")
    cursor.accept_word("column")
    return _column(cursor)


# ---- SHOW, DESCRIBE, queries -------------------------------------------------------------------------------------------------------


def _list(cursor: KsqldbCursor) -> s.ListItems:
    cursor.advance()
    if cursor.accept_word("connector", "plugins"):
        return s.ListItems("connector plugins")
    for kind in ("source", "sink"):
        if cursor.accept_word(kind, "connectors"):
            return s.ListItems(f"{kind} connectors")
    all = cursor.at_word("all", "topics") and cursor.accept_word("all")
    what = cursor.any_word(*LISTED)
    if what is None:
        raise cursor.error()
    return s.ListItems(what, what in EXTENDED and cursor.accept_word("extended"), all)


def _describe(cursor: KsqldbCursor) -> s.DescribeItem:
    cursor.advance()
    for kind in ("function", "connector"):
        if cursor.at_word(kind) and cursor.peek().kind in ("word", "quoted") and not cursor.at_word(kind, "extended"):
            at = cursor.advance().position
            return s.DescribeItem(cursor.name(), "function" if kind == "function" else "connector", position=at)
    if (cursor.at_word("streams") or cursor.at_word("tables")) and (cursor.peek().value in ("extended", ";", "")):
        word = cursor.any_word("streams", "tables")
        extended = cursor.accept_word("extended")
        return s.DescribeItem("", "streams" if word == "streams" else "tables", extended)
    first = cursor.at_word("extended") and cursor.peek().kind in ("word", "quoted") and cursor.accept_word("extended")
    at = cursor.position
    name = cursor.name()
    return s.DescribeItem(name, "relation", cursor.accept_word("extended") or first, at)


def _control(cursor: KsqldbCursor) -> s.ControlQuery:
    word = cursor.any_word("terminate", "pause", "resume")
    at = cursor.position
    query_id = None if cursor.accept_word("all") else cursor.name()
    match word:
        case "terminate":
            return s.ControlQuery("terminate", query_id, at)
        case "pause":
            return s.ControlQuery("pause", query_id, at)
    return s.ControlQuery("resume", query_id, at)


def _explain(cursor: KsqldbCursor) -> s.ExplainQuery:
    """Parses EXPLAIN {query_id | statement}. Raises 22023 for a statement without a query."""
    cursor.expect_word("explain")
    at = cursor.position
    if cursor.peek().kind == "end" or cursor.at(";", 1):
        return s.ExplainQuery(cursor.name(), at)
    statement = PARSERS[_words(cursor)](cursor)
    if not isinstance(statement, s.CreateAs | s.InsertQuery | s.PushQuery):
        raise InvalidParameterValue("The provided statement does not run a ksql query", position=at)
    return s.ExplainQuery(statement, at)


def _set(cursor: KsqldbCursor, *, system: bool = False) -> s.SetProperty:
    cursor.accept_word("set")
    at = cursor.position
    name = cursor.string()
    cursor.expect("=")
    return s.SetProperty(name, cursor.string(), system, at)


def _unset(cursor: KsqldbCursor) -> s.SetProperty:
    cursor.expect_word("unset")
    at = cursor.position
    return s.SetProperty(cursor.string(), None, position=at)


def _define(cursor: KsqldbCursor) -> s.DefineVariable:
    if cursor.accept_word("undefine"):
        return s.DefineVariable(cursor.name(), None)
    cursor.expect_word("define")
    name = cursor.name()
    cursor.expect("=")
    return s.DefineVariable(name, cursor.string())


def _assert(cursor: KsqldbCursor) -> s.AssertTopic | s.AssertSchema:
    cursor.expect_word("assert")
    absent = cursor.accept_word("not", "exists")
    if cursor.accept_word("topic"):
        topic = _external_name(cursor)
        properties = _properties(cursor) if cursor.accept_word("with") else ()
        return s.AssertTopic(topic, properties, absent, duration(cursor) if cursor.accept_word("timeout") else None)
    cursor.expect_word("schema")
    subject = None
    if cursor.accept_word("subject"):
        subject = _external_name(cursor)
    id = cursor.integer() if cursor.accept_word("id") else None
    if subject is None and id is None:
        raise cursor.error()
    return s.AssertSchema(subject, id, absent, duration(cursor) if cursor.accept_word("timeout") else None)


def _external_name(cursor: KsqldbCursor) -> str:
    """Parses the name of a topic or subject: in quotes as it is, otherwise in upper case."""
    return cursor.string() if cursor.token.kind == "string" else ksqldb_name(cursor.name())


def _run_script(cursor: KsqldbCursor) -> s.RunScript:
    cursor.expect_word("run", "script")
    return s.RunScript(cursor.string())


PARSERS: dict[tuple[str, ...], Callable[[KsqldbCursor], s.KsqldbStatement]] = {
    ("create",): _create,
    ("insert",): _insert,
    ("select",): _select,
    ("drop",): _drop,
    ("alter",): _alter,
    ("list",): _list,
    ("show",): _list,
    ("describe",): _describe,
    ("terminate",): _control,
    ("pause",): _control,
    ("resume",): _control,
    ("explain",): _explain,
    ("set",): _set,
    ("unset",): _unset,
    ("define",): _define,
    ("undefine",): _define,
    ("assert",): _assert,
    ("run", "script"): _run_script,
}
