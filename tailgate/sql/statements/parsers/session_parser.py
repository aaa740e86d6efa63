"""Parses statements about transactions, settings and prepared statements."""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, SyntaxError_
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.types import interval_fields
from tailgate.sql.statements import session_statements as v
from tailgate.sql.statements.parsers.clauses import assigned_values, if_not_exists, relation_name, setting_name, setting_value
from tailgate.values.times import zones
from tailgate.values.times.intervals import read_fields


def begin(cursor: Parser) -> v.Begin:
    """Parses BEGIN and START TRANSACTION."""
    start = cursor.advance().value == "start"
    if start:
        cursor.expect_word("transaction")
    else:
        cursor.any_word("work", "transaction")
    return v.Begin(_modes(cursor), start)


def _modes(cursor: Parser) -> tuple[str, ...]:
    """Parses transaction modes. Returns them in lower case, such as 'isolation level serializable'."""
    modes: list[str] = []
    while True:
        if cursor.accept_word("isolation", "level"):
            if cursor.accept_word("serializable"):
                level = "serializable"
            elif cursor.accept_word("repeatable", "read"):
                level = "repeatable read"
            elif cursor.accept_word("read", "committed"):
                level = "read committed"
            elif cursor.accept_word("read", "uncommitted"):
                level = "read uncommitted"
            else:
                cursor.accept_word("read") or cursor.accept_word("repeatable")
                raise cursor.error()
            modes.append("isolation level " + level)
        elif cursor.accept_word("read", "only"):
            modes.append("read only")
        elif cursor.accept_word("read", "write"):
            modes.append("read write")
        elif cursor.accept_word("not", "deferrable"):
            modes.append("not deferrable")
        elif cursor.accept_word("deferrable"):
            modes.append("deferrable")
        else:
            return tuple(modes)
        cursor.accept(",")


def _chain(cursor: Parser) -> bool:
    """Parses [AND [NO] CHAIN]. Returns whether the transaction is chained."""
    if cursor.accept_word("and"):
        negated = cursor.accept_word("no")
        cursor.expect_word("chain")
        return not negated
    return False


def commit(cursor: Parser) -> v.Commit:
    """Parses COMMIT and END."""
    cursor.advance()
    if cursor.at_word("prepared"):
        raise FeatureNotSupported("COMMIT PREPARED is not supported", position=cursor.position)
    cursor.any_word("work", "transaction")
    return v.Commit(_chain(cursor))


def rollback(cursor: Parser) -> v.Rollback | v.RollbackTo:
    """Parses ROLLBACK [TO SAVEPOINT] and ABORT."""
    cursor.advance()
    if cursor.at_word("prepared"):
        raise FeatureNotSupported("ROLLBACK PREPARED is not supported", position=cursor.position)
    cursor.any_word("work", "transaction")
    if cursor.accept_word("to"):
        cursor.accept_word("savepoint")
        return v.RollbackTo(name(cursor).name)
    return v.Rollback(_chain(cursor))


def savepoint(cursor: Parser) -> v.Savepoint:
    """Parses SAVEPOINT name."""
    cursor.advance()
    return v.Savepoint(name(cursor).name)


def release(cursor: Parser) -> v.Release:
    """Parses RELEASE [SAVEPOINT] name."""
    cursor.advance()
    cursor.accept_word("savepoint")
    return v.Release(name(cursor).name)


def set_constraints(cursor: Parser) -> v.SetConstraints:
    """Parses {ALL | name, …} {DEFERRED | IMMEDIATE}, after SET CONSTRAINTS."""
    names = () if cursor.accept_word("all") else tuple(cursor.listed(relation_name))
    mode = cursor.any_word("deferred", "immediate")
    if mode is None:
        raise cursor.error()
    return v.SetConstraints(names, mode == "deferred")


def set_(cursor: Parser) -> v.Set:
    """Parses SET, in all its forms."""
    cursor.expect_word("set")
    local = False
    if not cursor.at("=", 1) and not cursor.at_word(cursor.token.value, "to"):
        if cursor.accept_word("session", "characteristics", "as", "transaction"):
            return v.Set("session characteristics", _modes(cursor))
        if not cursor.at_word("session", "authorization"):
            local = cursor.any_word("local", "session") == "local"
        if cursor.at_word("session", "authorization"):
            cursor.advance()
    if cursor.accept_word("transaction"):
        if cursor.accept_word("snapshot"):
            if local:
                raise FeatureNotSupported("SET LOCAL TRANSACTION SNAPSHOT is not implemented")
            return v.Set("transaction snapshot", (cursor.string(),))
        return v.Set("transaction", _modes(cursor), local)
    if cursor.accept_word("time", "zone"):
        return v.Set("timezone", () if cursor.any_word("local", "default") else (_time_zone(cursor),), local)
    if cursor.accept_word("names"):
        return v.Set("client_encoding", () if cursor.accept_word("default") or cursor.token.kind == "end" else (cursor.string(),), local)
    if cursor.at_word("schema") and cursor.peek().kind == "string":
        cursor.advance()
        return v.Set("search_path", (cursor.string(),), local)
    if cursor.at_word("role") or cursor.at_word("authorization"):
        key = {"role": "role", "authorization": "session_authorization"}[cursor.advance().value]
        return v.Set(key, () if cursor.any_word("none", "default") else (setting_value(cursor),), local)
    return v.Set(setting_name(cursor), assigned_values(cursor), local)


def _time_zone(cursor: Parser) -> str:
    """Parses a time zone: a value, or INTERVAL [(p)] 'offset' [HOUR [TO MINUTE]], which Sequelize sends. Raises 22023."""
    if not (cursor.at_word("interval") and (cursor.at("(", 1) or cursor.peek().kind == "string")):
        return setting_value(cursor)
    cursor.advance()
    if cursor.accept("("):
        cursor.integer()
        cursor.expect(")")
    text, at = cursor.string(), cursor.position
    fields = interval_fields(cursor, exp.DataType(this=exp.DType.INTERVAL)).meta.get("fields", "")
    if fields not in ("", "hour", "hour to minute"):
        raise SyntaxError_("time zone interval must be HOUR or HOUR TO MINUTE", position=at)
    months, days, micros = read_fields(text, fields)
    for value, field in ((months, "months"), (days, "days")):
        if value:
            message = f'invalid value for parameter "TimeZone": "INTERVAL \'{text}\'"'
            raise InvalidParameterValue(message, detail=f"Cannot specify {field} in time zone interval.")
    return zones.shown_offset(micros // 1_000_000)


def alter_system(cursor: Parser) -> v.AlterSystem:
    """Parses ALTER SYSTEM {SET name {= | TO} {value, … | DEFAULT} | RESET {name | ALL}}, after ALTER SYSTEM."""
    if cursor.accept_word("reset"):
        return v.AlterSystem(None if cursor.accept_word("all") else setting_name(cursor))
    cursor.expect_word("set")
    return v.AlterSystem(setting_name(cursor), assigned_values(cursor))


def reset(cursor: Parser) -> v.Reset:
    """Parses RESET {name | ALL}."""
    cursor.advance()
    if cursor.accept_word("all"):
        return v.Reset(None)
    if cursor.accept_word("time", "zone"):
        return v.Reset("timezone")
    if cursor.accept_word("session", "authorization"):
        return v.Reset("session_authorization")
    if cursor.accept_word("transaction", "isolation", "level"):
        return v.Reset("transaction_isolation")
    return v.Reset(setting_name(cursor))


def discard(cursor: Parser) -> v.Discard:
    """Parses DISCARD."""
    cursor.advance()
    match cursor.any_word("all", "plans", "sequences", "temp", "temporary"):
        case "all" | "plans" | "sequences" | "temp" as what:
            return v.Discard(what)
        case "temporary":
            return v.Discard("temp")
    raise cursor.error()


def unlisten(cursor: Parser) -> v.Unlisten:
    """Parses UNLISTEN {name | *}."""
    cursor.advance()
    return v.Unlisten(None if cursor.accept("*") else name(cursor).name)


def listen(cursor: Parser) -> v.Listen:
    """Parses LISTEN channel."""
    cursor.advance()
    return v.Listen(name(cursor).name)


def notify(cursor: Parser) -> v.Notify:
    """Parses NOTIFY channel [, 'payload']."""
    cursor.advance()
    channel = name(cursor).name
    return v.Notify(channel, cursor.string() if cursor.accept(",") else "")


def create_extension(cursor: Parser) -> v.CreateExtension:
    """Parses [IF NOT EXISTS] name [WITH] [SCHEMA schema] [VERSION version] [CASCADE] after CREATE EXTENSION."""
    absent = if_not_exists(cursor)
    extension = name(cursor).name
    cursor.accept_word("with")
    while (option := cursor.any_word("schema", "version", "cascade")) is not None:
        if option == "schema":
            name(cursor)
        elif option == "version":
            cursor.advance()
    return v.CreateExtension(extension, absent)


def deallocate(cursor: Parser) -> v.Deallocate:
    """Parses DEALLOCATE [PREPARE] {name | ALL}."""
    cursor.advance()
    if cursor.peek().kind != "end":
        cursor.accept_word("prepare")
    return v.Deallocate(None if cursor.accept_word("all") else name(cursor).name)
