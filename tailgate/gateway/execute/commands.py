"""Statements that the session executes: settings, prepared statements. Each function returns a command tag."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from tailgate.gateway.execute import catalog_changes
from tailgate.gateway.security.ownership import check_change
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.session.transactions import State
from tailgate.gateway.settings.definitions import Setting, find
from tailgate.lake import errors as e
from tailgate.lake.catalog.names import Name, list_of, quoted
from tailgate.lake.keywords import quoted_text
from tailgate.sql import statements as s
from tailgate.sql.grammar.extensions import EXTENSIONS
from tailgate.sql.new_items import with_article


def set_modes(session: Session, modes: Sequence[str], prefix: str = "transaction_", *, local: bool = True) -> None:
    """Sets the modes of a transaction, or with another prefix the defaults of later ones."""
    for mode in modes:
        if mode.startswith("isolation level "):
            session.settings.set(f"{prefix}isolation", mode.removeprefix("isolation level "), local=local)
        elif mode in ("read only", "read write"):
            session.settings.set(f"{prefix}read_only", "on" if mode == "read only" else "off", local=local)
        elif mode in ("deferrable", "not deferrable"):
            session.settings.set(f"{prefix}deferrable", "on" if mode == "deferrable" else "off", local=local)


def set_value(session: Session, bound: Bound, statement: s.Set, values: Sequence[object]) -> str:
    name = statement.name.lower()
    if name in ("transaction", "session characteristics", "session characteristics as transaction"):
        if name == "transaction":
            if session.transaction.state is State.IDLE:
                session.notice("SET TRANSACTION can only be used in transaction blocks", "WARNING", "25P01")
                return "SET"
            set_modes(session, statement.values)
        else:
            set_modes(session, statement.values, "default_transaction_", local=False)
        return "SET"
    if name == "transaction snapshot":
        _import(session, statement.values[0])
        return "SET"
    if statement.local and session.transaction.state is State.IDLE:
        session.notice("SET LOCAL can only be used in transaction blocks", "WARNING", "25P01")
        return "SET"
    if not statement.values:
        session.settings.reset(name, local=statement.local)
    else:
        session.settings.set(name, _value(find(name), statement.values), local=statement.local)
    return "SET"


def _value(setting: Setting | None, values: tuple[str, ...]) -> str:
    """Returns the values of SET as one value. Those of a search path are quoted where necessary."""
    return list_of(values) if setting is not None and setting.kind == "path" else ", ".join(values)


def _import(session: Session, name: str) -> None:
    """Executes SET TRANSACTION SNAPSHOT: the block reads at the time of a snapshot from pg_export_snapshot(), with its catalog."""
    if not session.transaction.in_block:
        session.notice("SET TRANSACTION can only be used in transaction blocks", "WARNING", "25P01")
    if session.transaction.queried or session.transaction.savepoints or session.transaction.time is not None:
        raise e.ActiveSqlTransaction("SET TRANSACTION SNAPSHOT must be called before any query")
    if session.settings["transaction_isolation"] not in ("serializable", "repeatable read"):
        raise e.FeatureNotSupported("a snapshot-importing transaction must have isolation level SERIALIZABLE or REPEATABLE READ")
    snapshot = session.gateway.sessions.exported(name)
    if snapshot is None:
        raise e.InvalidParameterValue(f'invalid snapshot identifier: "{name}"')
    if session.transaction.state is not State.IDLE:
        session.transaction.read_at(session.serving, snapshot.time, snapshot.catalog)
        session.transaction.query()


def reset(session: Session, bound: Bound, statement: s.Reset, values: Sequence[object]) -> str:
    session.settings.reset(statement.name)
    return "RESET"


async def alter_system(session: Session, bound: Bound, statement: s.AlterSystem, values: Sequence[object]) -> str:
    """Executes ALTER SYSTEM. Processes apply the change after pg_reload_conf() or SIGHUP."""
    session.access.check_superuser("execute ALTER SYSTEM")
    catalog_changes.check_outside_block(session, "ALTER SYSTEM")
    processes, name = session.gateway.processes, statement.name
    if name is None:
        await asyncio.to_thread(processes.reset_all)
        return "ALTER SYSTEM"
    value = None
    if statement.values:
        value = _value(None if processes.owns(name) else find(name), statement.values)
    await asyncio.to_thread(processes.alter, name, value)
    return "ALTER SYSTEM"


async def alter_settings(session: Session, bound: Bound, statement: s.AlterSettings, values: Sequence[object]) -> str:
    """Executes ALTER ROLE and ALTER DATABASE with SET and RESET. Sessions that begin later have the settings."""
    role, settings = statement.role, session.settings
    check_change(statement, session.access.role, session.catalog, session.client.database)
    value = None
    if statement.setting is None:
        own = session.access.role.other_settings if statement.database else session.access.role.settings
        for name in own if role is not None else ():
            settings.check(name, None)
        action = "RESET ALL"
    else:
        if statement.from_current:
            value = settings.get(statement.setting)[1]
        elif statement.values:
            value = _value(find(statement.setting), statement.values)
        setting = ".".join(map(quoted, settings.check(statement.setting, value).split(".")))
        action = f"RESET {setting}" if value is None else f"SET {setting} TO {quoted_text(value)}"
    database = f" IN DATABASE {quoted(statement.database)}" if statement.database else ""
    target = f"ROLE {'ALL' if role is None else quoted(role.name)}{database}"
    if role is None and statement.database:
        target = f"DATABASE {quoted(statement.database)}"
    return await catalog_changes.run(session, replace(bound, text=f"ALTER {target} {action}"), statement, values)


async def comment(session: Session, bound: Bound, statement: s.Comment, values: Sequence[object]) -> str:
    """Executes COMMENT ON. As in PostgreSQL, another database is a warning, because a dump may have been restored under a new name."""
    if statement.kind == "database" and statement.name.name != session.client.database:
        session.notice(f'database "{statement.name.name}" does not exist', "WARNING", e.InvalidCatalogName.sqlstate)
        return "COMMENT"
    return await catalog_changes.run(session, bound, statement, values)


def discard(session: Session, bound: Bound, statement: s.Discard, values: Sequence[object]) -> str:
    if statement.what == "all":
        catalog_changes.check_outside_block(session, "DISCARD ALL")
        session.portals.drop_all(held=True)
        session.statements.clear()
        session.settings.reset("session_authorization")
        session.settings.reset(None)
        session.variables.clear()
        session.transaction.advisory_locks.release_all()
        session.notifications.unlisten(None)
    if statement.what in ("all", "sequences"):
        session.sequences.clear()
    if statement.what in ("all", "temp"):
        session.naming.drop_all()
    return f"DISCARD {statement.what.upper()}"


def define(session: Session, bound: Bound, statement: s.Define, values: Sequence[object]) -> str:
    session.variables.define(statement.name, statement.value)
    return "UNDEFINE" if statement.value is None else "DEFINE"


def deallocate(session: Session, bound: Bound, statement: s.Deallocate, values: Sequence[object]) -> str:
    if statement.name is None:
        session.statements.clear()
        return "DEALLOCATE ALL"
    if session.statements.pop(statement.name, None) is None:
        raise e.InvalidSqlStatementName(f'prepared statement "{statement.name}" does not exist')
    return "DEALLOCATE"


def listen(session: Session, bound: Bound, statement: s.Listen, values: Sequence[object]) -> str:
    session.notifications.listen(statement.channel)
    return "LISTEN"


def unlisten(session: Session, bound: Bound, statement: s.Unlisten, values: Sequence[object]) -> str:
    session.notifications.unlisten(statement.channel)
    return "UNLISTEN"


def notify(session: Session, bound: Bound, statement: s.Notify, values: Sequence[object]) -> str:
    session.notifications.notify(statement.channel, statement.payload, session.client.process)
    return "NOTIFY"


def create_extension(session: Session, bound: Bound, statement: s.CreateExtension, values: Sequence[object]) -> str:
    """Executes CREATE EXTENSION of one that exists. Raises 42710, and 0A000 for others."""
    session.settings.check_writable("CREATE EXTENSION")
    if statement.name not in EXTENSIONS:
        hint = "The functions of Tailgate exist without extensions."
        raise e.FeatureNotSupported(f'extension "{statement.name}" is not available', hint=hint)
    if not statement.if_not_exists:
        raise e.DuplicateObject(f'extension "{statement.name}" already exists')
    session.notice(f'extension "{statement.name}" already exists, skipping', sqlstate=e.DuplicateObject.sqlstate)
    return "CREATE EXTENSION"


def comment_on_extension(session: Session, bound: Bound, statement: s.CommentOnExtension, values: Sequence[object]) -> str:
    """Executes COMMENT ON EXTENSION with the comment that the extension has, as in a dump. Raises 42704, 42501, and 0A000 for others."""
    session.settings.check_writable("COMMENT")
    if (extension := EXTENSIONS.get(statement.name)) is None:
        raise e.UndefinedObject(f'extension "{statement.name}" does not exist')
    if not session.access.role.superuser:
        raise e.InsufficientPrivilege(f"must be owner of extension {statement.name}")
    if statement.text != extension.comment:
        raise e.FeatureNotSupported("another comment on an extension is not supported")
    return "COMMENT"


def drop_absent(session: Session, bound: Bound, statement: s.DropAbsent, values: Sequence[object]) -> str:
    """Executes DROP of an object of a kind that does not exist. Raises PostgreSQL's error, or with IF EXISTS sends its notice."""
    tag = f"DROP {statement.kind.upper()}"
    session.settings.check_writable(tag)
    if statement.kind in ("database", "tablespace"):
        catalog_changes.check_outside_block(session, tag)
    for name in statement.names:
        if statement.kind == "database" and name.name == session.client.database:
            raise e.ObjectInUse("cannot drop the currently open database")
        error = _absent(session, statement, name)
        if not statement.if_exists:
            raise error
        words = error.message.replace(" for table ", " for relation ").replace(' for encoding "UTF8"', "")
        session.notice(f"{words}, skipping")
    return tag


NOUNS = {"foreign data wrapper": "foreign-data wrapper", "statistics": "statistics object"}  # in messages, where they differ from the kind


def _absent(session: Session, statement: s.DropAbsent, name: Name) -> e.TailgateError:
    """Returns PostgreSQL's error for an object that does not exist. Raises 42809 for a relation of another kind."""
    catalog, kind, at = session.catalog, statement.kind, statement.table or name
    if at.schema is not None and catalog.find_schema(at.schema) is None:
        return e.InvalidSchemaName(f'schema "{at.schema}" does not exist')
    if statement.table is not None:
        if catalog.find(at) is None:
            return e.UndefinedTable(f'relation "{at}" does not exist')
        return e.UndefinedObject(f'{kind} "{name}" for {"relation" if kind == "rule" else "table"} "{at.name}" does not exist')
    if kind == "foreign table":
        if (item := catalog.find(name)) is not None:
            hint = f"Use DROP {item.kind.upper()} to remove {with_article(item.kind)}."
            raise e.WrongObjectType(f'"{name.name}" is not a foreign table', hint=hint)
        return e.UndefinedObject(f'foreign table "{name}" does not exist')
    if kind == "database":
        return e.InvalidCatalogName(f'database "{name}" does not exist')
    encoding = ' for encoding "UTF8"' if kind == "collation" else ""
    return e.UndefinedObject(f'{NOUNS.get(kind, kind)} "{name}"{encoding} does not exist')
