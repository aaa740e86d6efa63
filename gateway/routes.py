"""Who answers a statement, and how: `bind` looks its names up, `begin` starts it.

    SELECT, VALUES …            serving, or the catalog's tables         ──► rows
    TAIL, COPY, cursors         tail, encode.copying, portals            ──► rows that may go on for ever
    SHOW, EXPLAIN               show, control                            ──► rows
    CREATE, DROP                the engine, by control                   ──► a tag
    SET, BEGIN, PREPARE, …      the session itself                       ──► a tag

Errors carry positions in the statement's own text; the session moves them to where the statement stands in what was sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gateway import show, tail, times
from gateway.encode.copying import CopyEncoder, CopyOptions
from gateway.parsed import Known, Nothing
from gateway.portals import Bound, Portal, Rows, TableRows, Tagged
from gateway.transactions import Move, State
from lake import errors as e
from lake.types import TEXT, UNKNOWN, Field, Type
from sql import explain
from sql import statements as s

if TYPE_CHECKING:
    from gateway.session import Session

MIRROR_TIMEOUT_S = 5.0  # a statement's own entry is in this gateway's mirrors within milliseconds; 5 s is a machine in trouble


@dataclass(slots=True)
class CopyOut:
    """COPY … TO STDOUT: `rows` in the form that `encoder` writes."""

    encoder: CopyEncoder
    rows: Rows


Result = Rows | str | CopyOut

# what may run in a block that failed
ENDING = (s.Commit, s.Rollback, s.RollbackTo)


def check_failed(session: Session, statement: Known) -> None:
    if session.transaction.state is State.FAILED and not isinstance(statement, ENDING):
        raise e.InFailedSqlTransaction("current transaction is aborted, commands ignored until end of transaction block")


# --- bind ----------------------------------------------------------------------------------------------------------------


async def bind(session: Session, statement: Known, text: s.StatementText, oids: Sequence[int]) -> Bound:
    """The statement with its names looked up; columns and parameters as Describe tells them."""
    bound = Bound(statement, text.text, text.position, catalog=session.serving.catalog)
    match statement:
        case s.Select():
            return await _bind_select(session, bound, statement, oids)
        case s.Tail():
            return _bind_tail(session, bound, statement, oids)
        case s.CopyTo(statement=inner):
            body = await bind(session, inner, text, oids)
            return replace(bound, parameters=body.parameters, body=body)
        case s.DeclareCursor(statement=inner):
            body = await bind(session, inner, text, oids)
            return replace(bound, parameters=body.parameters, body=body)
        case s.Fetch(cursor=name):
            portal = session.portals.get(name)
            return bound if portal is None or statement.move else replace(bound, columns=portal.bound.columns)
        case s.Execute(name=name):
            prepared = session.statements.get(name)
            if prepared is None:
                raise e.InvalidSqlStatementName(f'prepared statement "{name}" does not exist')
            return replace(bound, columns=prepared.bound.columns)
        case s.Show():
            return replace(bound, columns=show.columns(statement, session.settings))
        case s.Explain():
            return replace(bound, columns=(Field("QUERY PLAN", TEXT),))
        case _:
            return bound


async def _bind_select(session: Session, bound: Bound, statement: s.Select, oids: Sequence[int]) -> Bound:
    serving = session.serving
    if serving.is_catalog_query(statement):
        columns, parameters, body = await serving.describe_catalog(statement, oids, session)
        return replace(bound, columns=columns, parameters=parameters, is_catalog=True, body=body)
    prepared = serving.prepare(statement, oids)
    return replace(bound, columns=prepared.columns, parameters=_declared(prepared.parameters, oids), prepared=prepared)


def _declared(types: Sequence[Type], oids: Sequence[int]) -> tuple[Type, ...]:
    """A parameter whose type nothing tells is text, as in PostgreSQL."""
    return tuple(TEXT if t == UNKNOWN else t for t in types)


def _bind_tail(session: Session, bound: Bound, statement: s.Tail, oids: Sequence[int]) -> Bound:
    target = statement.target
    if isinstance(target, s.Name):
        if target.schema not in (None, "public"):
            raise e.UndefinedTable(f'relation "{target}" does not exist', position=target.position)
        item = session.serving.catalog.relation(target.name, target.position)
        if item.stored:
            if not item.ready:
                raise e.ObjectNotInPrerequisiteState(
                    f'{item.kind} "{item.name}" is still being filled', hint="It can be read when its CREATE statement has answered."
                )
            return replace(bound, columns=tail.columns(item.columns, statement.progress), body=item)
        target = times.of_relation(target.name)
    prepared = session.serving.prepare(target, oids)
    parameters = _declared(prepared.parameters, oids)
    return replace(bound, columns=tail.columns(prepared.columns, statement.progress), parameters=parameters, prepared=prepared)


# --- begin ---------------------------------------------------------------------------------------------------------------


async def begin(session: Session, bound: Bound, values: Sequence[object], formats: Sequence[int], at: int | None = None) -> Result:
    """Starts a statement: its rows, or the tag of one that has none. `at`: of a TAIL, the time it was declared at."""
    statement = bound.statement
    match statement:
        case s.Select():
            return await _select(session, bound, statement, values)
        case s.Tail():
            return await _tail(session, bound, statement, values, at)
        case s.CopyTo():
            encoder = CopyEncoder(bound.body.columns or (), copy_options(statement), session.settings.style)
            rows = await begin(session, bound.body, values, ())
            assert not isinstance(rows, (str, CopyOut))
            return CopyOut(encoder, rows)
        case s.Show():
            status = await session.control.status() if show.needs_engine(statement) else {}
            table = show.answer(statement, session.serving.catalog, session.settings, session.database, status)
            return Tagged(TableRows(bound.columns or (), table), "SHOW", counted=False)
        case s.Explain():
            lines = pa.table([pa.array(await _explain(session, bound, statement), pa.string())], names=["c0"])
            return Tagged(TableRows(bound.columns or (), lines), "EXPLAIN", counted=False)
        case s.Fetch():
            return await _fetch(session, bound, statement)
        case s.Execute():
            return await _execute(session, statement, formats)
        case Nothing(tag=tag):
            return tag
        case s.CreateSource() | s.CreateView() | s.CreateSink() | s.Drop():
            return await _change_catalog(session, bound)
        case _:
            command = COMMANDS.get(type(statement))
            if command is None:
                raise e.FeatureNotSupported(f"{type(statement).__name__} is not supported")
            answer = command(session, bound, statement, values)
            return answer if isinstance(answer, str) else await answer


async def _explain(session: Session, bound: Bound, statement: s.Explain) -> Sequence[str]:
    """How a view is maintained is the engine's to say; of a query, the plan that is read."""
    target = statement.target
    if isinstance(target, s.Tail):
        target = s.Select(target.target) if isinstance(target.target, s.QueryText) else s.Select(times.of_relation(target.target.name))
    if isinstance(target, s.Select):
        if session.serving.is_catalog_query(target):
            raise e.FeatureNotSupported("EXPLAIN of a query of the system catalog is not supported")
        return explain.tree(session.serving.prepare(target, ()).query.plan).splitlines()
    return (await session.control.statement(bound.text, session.statement_settings())).lines


async def _select(session: Session, bound: Bound, statement: s.Select, values: Sequence[object]) -> Rows:
    serving = session.serving
    columns = bound.columns or ()
    if bound.is_catalog:
        columns, table = await serving.run_catalog(bound.body, values, session)
        return TableRows(columns, table)
    assert bound.prepared is not None
    if statement.as_of is not None:
        at = await times.as_of(serving, statement.as_of)
        while serving.time < at:
            await serving.wait(serving.time, 1.0)
        snapshot = serving.snapshot(at)
        try:
            return TableRows(columns, await serving.run(bound.prepared, values, at=snapshot))
        finally:
            snapshot.close()
    return TableRows(columns, await serving.run(bound.prepared, values, at=session.transaction.snapshot(serving)))


async def _tail(session: Session, bound: Bound, statement: s.Tail, values: Sequence[object], at: int | None) -> Rows:
    serving = session.serving
    after = session.transaction.time or at or serving.time
    if statement.as_of is not None:
        after = await times.as_of(serving, statement.as_of)
    up_to = None if statement.up_to is None else await times.as_of(serving, statement.up_to, readable=False)
    if up_to is not None and up_to < after:
        raise e.DataException(f"subscription lower bound (`AS OF`) is greater than its upper bound (`UP TO`): {after} > {up_to}")
    head = 3 if statement.progress else 2
    prepared = bound.prepared
    return tail.TailRows(
        serving,
        bound.body.id if prepared is None else prepared,
        (bound.columns or ())[head:],
        values=values,
        after=after,
        snapshot=statement.snapshot,
        progress=statement.progress,
        up_to=up_to,
        constant=prepared is not None and not prepared.relations,
    )


_BOOLEANS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


def copy_options(statement: s.CopyTo) -> CopyOptions:
    csv = statement.format == "csv"
    words: dict[str, Any] = {"format": statement.format, "delimiter": b"," if csv else b"\t", "null": b"" if csv else b"\\N"}
    for name, value in statement.options:
        if name == "format":
            continue
        if statement.format == "binary" and name in ("delimiter", "null", "header"):
            raise e.SyntaxError_(f"cannot specify {name.upper()} in BINARY mode")
        if not csv and name in ("quote", "escape", "force_quote"):
            raise e.FeatureNotSupported(f"COPY {name.replace('_', ' ')} available only in CSV mode")
        match name:
            case "delimiter" | "null" | "quote" | "escape":
                words[name] = str(value).encode()
            case "header":
                given = True if value is None or value == "" else _BOOLEANS.get(str(value).lower())
                if given is None:
                    raise e.SyntaxError_('header requires a Boolean value or "match"')
                words[name] = given
            case "force_quote":
                words[name] = None if value == "*" else frozenset(map(str, value if isinstance(value, tuple) else (value,)))
            case "encoding":
                if str(value).lower().replace("-", "") not in ("utf8", "unicode"):
                    raise e.InvalidParameterValue('argument to option "encoding" must be a valid encoding name')
            case _:
                raise e.SyntaxError_(f'option "{name}" not recognized')
    if csv and "quote" in words and "escape" not in words:
        words["escape"] = words["quote"]
    return CopyOptions(**words)


async def _fetch(session: Session, bound: Bound, statement: s.Fetch) -> Result:
    portal = cursor(session, statement.cursor)
    timeout = times.timeout(statement.timeout)
    if statement.count is not None and statement.count < 0:
        raise e.ObjectNotInPrerequisiteState("cursor can only scan forward", hint="Declare it with SCROLL option to enable backward scan.")
    if portal.rows is None:
        rows = await begin(session, portal.bound, portal.values, portal.formats, portal.at)
        assert not isinstance(rows, (str, CopyOut))
        portal.rows = rows
    rows = portal.rows
    columns = portal.bound.columns or ()
    parts: list[pa.Table] = []
    count = 0
    while statement.count is None or count < statement.count:
        table = await rows.fetch(None if statement.count is None else statement.count - count, timeout)
        parts.append(table)
        count += table.num_rows
        if rows.ended or isinstance(rows, tail.TailRows):
            break
    if statement.move:
        return f"MOVE {count}"
    if not parts:
        parts = [pa.schema([pa.field(f"c{i}", f.type.arrow) for i, f in enumerate(columns)]).empty_table()]
    return Tagged(TableRows(columns, pa.concat_tables(parts) if len(parts) > 1 else parts[0]), "FETCH")


def cursor(session: Session, name: str) -> Portal:
    portal = session.portals.get(name)
    if portal is None:
        raise e.InvalidCursorName(f'cursor "{name}" does not exist')
    return portal


async def _execute(session: Session, statement: s.Execute, formats: Sequence[int]) -> Result:
    prepared = session.statements.get(statement.name)
    if prepared is None:
        raise e.InvalidSqlStatementName(f'prepared statement "{statement.name}" does not exist')
    check_failed(session, prepared.bound.statement)
    values: list[object] = []
    if statement.arguments is not None:
        values = await times.row(session.serving, statement.arguments)
    wanted = prepared.bound.parameters
    if len(values) != len(wanted):
        raise e.SyntaxError_(
            f'wrong number of parameters for prepared statement "{statement.name}"',
            detail=f"Expected {len(wanted)} parameters but got {len(values)}.",
        )
    values = [times.converted(v, t, session.settings.style) for v, t in zip(values, wanted, strict=True)]
    bound = await session.rebound(prepared)
    return await begin(session, bound, values, formats)


async def _change_catalog(session: Session, bound: Bound) -> str:
    if session.transaction.in_block:
        words = bound.text.split(None, 3)[:3]
        verb = " ".join(words[: 3 if words[1].lower() == "materialized" else 2]).upper()
        raise e.ActiveSqlTransaction(f"{verb} cannot run inside a transaction block")
    session.out.flush()
    done = await session.control.statement(bound.text, session.statement_settings())
    for notice in done.notices:
        session.notice(notice.get("message", ""), notice.get("severity", "NOTICE"), notice.get("sqlstate", "00000"), notice.get("hint"))
    if done.time:
        await session.serving.wait(done.time - 1, MIRROR_TIMEOUT_S)
    return done.tag


# --- commands: (session, bound, statement, values) to a tag ---------------------------------------------------------------


def _begin(session: Session, _: Bound, statement: s.Begin, values: Sequence[object]) -> str:
    transaction = session.transaction
    if transaction.in_block:
        session.notice("there is already a transaction in progress", "WARNING", "25001")
    else:
        session.settings.begin()
    transaction.move(Move.BEGIN)
    _modes(session, statement.modes)
    return "BEGIN"


def _modes(session: Session, modes: Sequence[str]) -> None:
    for mode in modes:
        if mode.startswith("isolation level "):
            session.settings.set("transaction_isolation", mode.removeprefix("isolation level "), local=True)
        elif mode in ("read only", "read write"):
            session.settings.set("transaction_read_only", "on" if mode == "read only" else "off", local=True)
        elif mode in ("deferrable", "not deferrable"):
            session.settings.set("transaction_deferrable", "on" if mode == "deferrable" else "off", local=True)


def _end(session: Session, _: Bound, statement: s.Commit | s.Rollback, values: Sequence[object]) -> str:
    transaction = session.transaction
    commits = isinstance(statement, s.Commit)
    if not transaction.in_block:
        if statement.chain:
            raise e.NoActiveSqlTransaction(f"{'COMMIT' if commits else 'ROLLBACK'} AND CHAIN can only be used in transaction blocks")
        session.notice("there is no transaction in progress", "WARNING", "25P01")
    undone = not commits or transaction.state is State.FAILED
    was_block = transaction.in_block
    transaction.move(Move.COMMIT if commits else Move.ROLLBACK)
    session.drop_portals()
    if was_block:
        session.settings.end(undo=undone)
    if statement.chain:
        session.settings.begin()
        transaction.move(Move.BEGIN)
    return "ROLLBACK" if undone else "COMMIT"


def _block(session: Session, words: str) -> None:
    if not session.transaction.in_block:
        raise e.NoActiveSqlTransaction(f"{words} can only be used in transaction blocks")


def _savepoint(session: Session, _: Bound, statement: s.Savepoint, values: Sequence[object]) -> str:
    _block(session, "SAVEPOINT")
    session.transaction.savepoints.append(statement.name)
    return "SAVEPOINT"


def _release(session: Session, _: Bound, statement: s.Release, values: Sequence[object]) -> str:
    _block(session, "RELEASE SAVEPOINT")
    session.transaction.back_to(statement.name, keep=False)
    return "RELEASE"


def _rollback_to(session: Session, _: Bound, statement: s.RollbackTo, values: Sequence[object]) -> str:
    _block(session, "ROLLBACK TO SAVEPOINT")
    session.transaction.back_to(statement.name, keep=True)
    if session.transaction.state is State.FAILED:
        session.settings.begin()
    session.transaction.move(Move.RECOVER)
    return "ROLLBACK"


def _set(session: Session, _: Bound, statement: s.Set, values: Sequence[object]) -> str:
    name = statement.name.lower()
    if name in ("transaction", "session characteristics", "session characteristics as transaction"):
        if name == "transaction":
            if not session.transaction.in_block:
                session.notice("SET TRANSACTION can only be used in transaction blocks", "WARNING", "25P01")
                return "SET"
            _modes(session, statement.values)
        else:
            for mode in statement.values:
                if mode.startswith("isolation level "):
                    session.settings.set("default_transaction_isolation", mode.removeprefix("isolation level "))
        return "SET"
    if statement.local and not session.transaction.in_block:
        session.notice("SET LOCAL can only be used in transaction blocks", "WARNING", "25P01")
        return "SET"
    if not statement.values:
        session.settings.reset(name, local=statement.local)
    else:
        session.settings.set(name, ", ".join(statement.values), local=statement.local)
    return "SET"


def _reset(session: Session, _: Bound, statement: s.Reset, values: Sequence[object]) -> str:
    session.settings.reset(statement.name)
    return "RESET"


def _discard(session: Session, _: Bound, statement: s.Discard, values: Sequence[object]) -> str:
    if statement.what == "all":
        if session.transaction.in_block:
            raise e.ActiveSqlTransaction("DISCARD ALL cannot run inside a transaction block")
        session.drop_portals()
        session.statements.clear()
        session.settings.reset(None)
    return f"DISCARD {statement.what.upper()}"


async def _prepare(session: Session, bound: Bound, statement: s.Prepare, values: Sequence[object]) -> str:
    if statement.name in session.statements:
        raise e.DuplicatePreparedStatement(f'prepared statement "{statement.name}" already exists')
    text = s.StatementText(statement.text, bound.position + max(bound.text.find(statement.text), 0))
    oids = tuple(t.oid for t in statement.types)
    inner = await bind(session, statement.statement, text, oids)
    session.keep(statement.name, statement.text.encode(), oids, inner)
    return "PREPARE"


def _deallocate(session: Session, _: Bound, statement: s.Deallocate, values: Sequence[object]) -> str:
    if statement.name is None:
        session.statements.clear()
        return "DEALLOCATE ALL"
    if session.statements.pop(statement.name, None) is None:
        raise e.InvalidSqlStatementName(f'prepared statement "{statement.name}" does not exist')
    return "DEALLOCATE"


async def _declare(session: Session, bound: Bound, statement: s.DeclareCursor, values: Sequence[object]) -> str:
    if statement.hold:
        raise e.FeatureNotSupported("WITH HOLD is unsupported for cursors", hint="Fetch what is needed before the transaction ends.")
    if statement.scroll:
        raise e.FeatureNotSupported("SCROLL is unsupported for cursors", hint="Cursors move forward only.")
    if session.transaction.state is State.IDLE:
        raise e.NoActiveSqlTransaction("DECLARE CURSOR can only be used in transaction blocks")
    if statement.name in session.portals:
        raise e.DuplicateCursor(f'cursor "{statement.name}" already exists')
    inner: Bound = bound.body
    formats = (int(statement.binary),) * len(inner.columns or ())
    portal = Portal(statement.name, inner, tuple(values), formats, is_cursor=True, at=session.serving.time)
    session.portals[statement.name] = portal
    return "DECLARE CURSOR"


def _close(session: Session, _: Bound, statement: s.CloseCursor, values: Sequence[object]) -> str:
    if statement.name is None:
        for name in [name for name, portal in session.portals.items() if portal.is_cursor]:
            session.drop_portal(name)
        return "CLOSE CURSOR ALL"
    cursor(session, statement.name)
    session.drop_portal(statement.name)
    return "CLOSE CURSOR"


Command = Callable[["Session", Bound, Any, Sequence[object]], "str | Awaitable[str]"]
COMMANDS: dict[type, Command] = {
    s.Begin: _begin,
    s.Commit: _end,
    s.Rollback: _end,
    s.Savepoint: _savepoint,
    s.Release: _release,
    s.RollbackTo: _rollback_to,
    s.Set: _set,
    s.Reset: _reset,
    s.Discard: _discard,
    s.Prepare: _prepare,
    s.Deallocate: _deallocate,
    s.DeclareCursor: _declare,
    s.CloseCursor: _close,
}
