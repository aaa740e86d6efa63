"""The statements of a session by kind: `bind` resolves their names, `begin` runs them.

`EXECUTORS` has one row for each kind (`sql.statements.kinds`): the function that determines its columns and parameters, and the one that
runs it.

    SELECT, TAIL, COPY TO, cursors   queries, cursors, results      ──► rows, possibly without an end
    SHOW, EXPLAIN                    show, control                  ──► rows
    INSERT, UPDATE, DELETE, …        tables.writes, tables.copy_in   ──► rows of RETURNING, or a tag
    CREATE TABLE … AS, ALTER TABLE   tables.create_table_as, changes ──► a tag
    CREATE, DROP, …                  catalog_changes: the engine    ──► a tag
    SET, BEGIN, PREPARE, …           commands: the session itself   ──► a tag

Errors have positions in the statement's own text. `bind_at` adds the statement's position in the query string.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from tailgate.gateway.encode.copying import CopyEncoder
from tailgate.gateway.execute import (
    catalog_changes,
    commands,
    constraints,
    explain,
    queries,
    show,
    silences,
    subscriptions,
    time_expressions,
    tokens,
)
from tailgate.gateway.execute.blocks import cursors, transactions
from tailgate.gateway.execute.blocks.alone import or_alone
from tailgate.gateway.execute.ksqldb import printing, pull, push
from tailgate.gateway.execute.plpgsql import functions, run
from tailgate.gateway.execute.plpgsql.statements import Statements
from tailgate.gateway.execute.tables import changes, copy_in, create_table_as, maintenance, temporary_changes
from tailgate.gateway.execute.tables import writes as table_writes
from tailgate.gateway.ksqldb import targets
from tailgate.gateway.results.copying import CopyOut, Result, copy_options
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.parsing import LongWrite, ParsedStatement
from tailgate.gateway.session.statements.portals import Bound, Statement, check_result
from tailgate.gateway.session.transactions import State
from tailgate.lake import errors as e
from tailgate.lake.catalog.roles import OPERATOR, PUBLIC
from tailgate.lake.types import Type
from tailgate.sql import statements as s
from tailgate.sql.binder.writes.copying import copied_query
from tailgate.sql.ksqldb.declared import switches
from tailgate.sql.new_items import known_type
from tailgate.sql.statements.kinds import KINDS, Place
from tailgate.sql.statements.parsing import with_session_roles
from tailgate.values.composites.arrays import Multidimensional

# A function of a row: the statement is that of `bound`, with its own type.
Bind = Callable[[Session, Bound, Any, Sequence[int]], "Bound | Awaitable[Bound]"]
Run = Callable[[Session, Bound, Any, Sequence[object]], "Result | Awaitable[Result]"]


@dataclass(frozen=True, slots=True)
class Executor:
    """The functions that execute statements of one kind.

    `run` returns the rows, or the command tag if there are none. `bind` sets the columns and parameters that Describe returns; None for
    a statement that has neither.
    """

    run: Run
    bind: Bind | None = None


SWITCHABLE = (s.CreateKsqldbItem, s.InsertMessage, s.InsertStream, s.PullKsqldb, s.FollowKsqldb)  # may use features that are switched off
WRITES = (s.Insert, s.Update, s.Delete, s.WithWrites, LongWrite)  # of COPY … TO
# statements of dumps that name owners and grantees
NAMING_OWNERS = (s.Grant, s.AlterItem, s.AlterTable, s.AlterSequence, s.AlterType, s.AlterDomain, s.AlterFunction, s.AlterSchema)
# statements that may name the session's roles by words
NAMING_ROLES = (
    *NAMING_OWNERS,
    *(s.GrantRole, s.AlterDefaultPrivileges, s.AlterRole, s.AlterSettings, s.CreateRole, s.DropOwned, s.ReassignOwned, s.CreateSchema),
    *(s.Comment, s.CreateToken, s.DropToken),
)
SESSION_ROLE = re.compile(r"\b(current_user|current_role|session_user)\b", re.IGNORECASE)
WITHOUT_SNAPSHOT = (
    *(s.Begin, s.Commit, s.Rollback, s.Savepoint, s.Release, s.RollbackTo),
    *(s.Set, s.Reset, s.Show, s.SetConstraints, s.Lock, s.Fetch, s.Listen, s.Unlisten, s.Notify, s.Checkpoint),
)  # after them, SET TRANSACTION is still possible, as in PostgreSQL


def check_failed(session: Session, statement: ParsedStatement) -> None:
    """Raises 25P02 in a failed block, unless the statement ends it or returns to a savepoint."""
    if session.transaction.state is State.FAILED and not (type(statement) in KINDS and KINDS[type(statement)].ends_failed_block):
        raise e.InFailedSqlTransaction("current transaction is aborted, commands ignored until end of transaction block")


def writes(session: Session, statement: ParsedStatement) -> bool:
    """Returns whether the statement changes rows of tables, or EXECUTE or EXPLAIN ANALYZE of a statement that does."""
    if isinstance(statement, s.Explain):
        return statement.analyze and isinstance(statement.target, (s.Execute, *explain.WRITES)) and writes(session, statement.target)
    if isinstance(statement, s.Execute):
        return writes(session, session.statements.find(statement.name).bound.statement)
    if isinstance(statement, s.CopyTo):
        return isinstance(statement.statement, WRITES)
    return isinstance(statement, LongWrite) or KINDS[type(statement)].place is Place.WRITE


def defines(statement: ParsedStatement) -> bool:
    """Returns whether the statement changes the catalog."""
    return not isinstance(statement, LongWrite) and KINDS[type(statement)].place is Place.CATALOG


async def bind(session: Session, statement: ParsedStatement, text: s.StatementText, oids: Sequence[int]) -> Bound:
    """Resolves the names of a statement, and determines the columns and parameters of Describe. Raises 25P02 in a failed block."""
    check_failed(session, statement)
    if session.transaction.functions and isinstance(statement, s.Select):
        described = await _called_in(session, text.text, oids, calls=False)
        if described is not None:  # without a catalog, it is bound again before it runs, because the functions may be others by then
            return replace(described, parsed=statement, text=text.text, position=text.position, catalog=None)
    parsed, statement = statement, targets.in_dialect(statement, text.text, session.catalog, session.settings.dialect)
    return await _bound(session, Bound(statement, parsed, text.text, text.position, catalog=session.catalog), oids)


async def _bound(session: Session, bound: Bound, oids: Sequence[int]) -> Bound:
    if isinstance(bound.statement, SWITCHABLE):
        switches.check(bound.statement.statement, lambda name: session.settings[name] == "off")
    executor = EXECUTORS.get(type(bound.statement))
    if executor is None or executor.bind is None:
        return bound
    result = executor.bind(session, bound, bound.statement, oids)
    return result if isinstance(result, Bound) else await result


async def bind_at(session: Session, statement: ParsedStatement, text: s.StatementText, oids: Sequence[int]) -> Bound:
    """Does the same as `bind`. Adds the statement's place in the query string to the position of an error."""
    try:
        return await bind(session, statement, text, oids)
    except e.TailgateError as error:
        if error.position is not None:
            error.position += text.position
        raise


def check_no_parameters(bound: Bound) -> None:
    """Raises 42P02 if a statement that gets no values has parameters."""
    if bound.parameters:
        at = bound.text.find("$")
        raise e.UndefinedParameter("there is no parameter $1", position=at if at >= 0 else None)


async def begin(session: Session, bound: Bound, values: Sequence[object]) -> Result:
    """Runs a statement. Returns its rows, or the command tag if it has none."""
    bound = _with_session_roles(session, bound)
    if session.transaction.functions and isinstance(bound.parsed, s.Select):
        bound = await _called_in(session, bound.text, [p.oid for p in bound.parameters], calls=True) or bound
    executor = EXECUTORS.get(type(bound.statement))
    if executor is None:
        raise e.FeatureNotSupported(f"{type(bound.statement).__name__} is not supported")
    if writes(session, bound.statement):
        time_expressions.check_writable(session)
    if not isinstance(bound.statement, WITHOUT_SNAPSHOT):
        session.transaction.query()
    if session.transaction.pending and session.transaction.time is None and _takes_snapshot(bound.statement):
        await session.serving.queries.catch_up()
    result = executor.run(session, bound, bound.statement, values)
    return await result if isinstance(result, Awaitable) else result


def _takes_snapshot(statement: ParsedStatement) -> bool:
    """Returns whether a statement may take the snapshot of its transaction, if it is the first one."""
    imports = isinstance(statement, s.Set) and statement.name.lower() == "transaction snapshot"
    return imports or isinstance(statement, s.Lock) or not isinstance(statement, WITHOUT_SNAPSHOT)


def _with_session_roles(session: Session, bound: Bound) -> Bound:
    """Returns the statement with the current names of the session's roles, if it names them by words such as CURRENT_USER.

    In a lake without roles, the name with which a client has signed in is another name of the operator, who then owns all objects.
    """
    if not isinstance(bound.statement, NAMING_ROLES):
        return bound
    user, others = session.client.user, dict[str, str]()
    if isinstance(bound.statement, NAMING_OWNERS) and user != PUBLIC.name and not session.catalog.has_roles:
        others = {user: OPERATOR.name}
    if not SESSION_ROLE.search(bound.text) and not any(name.lower() in bound.text.lower() for name in others):
        return bound
    text = with_session_roles(bound.text, session.access.role.name, session.access.session_role.name, others)
    statement = s.parse(text)
    return replace(bound, statement=statement, parsed=statement, text=text)


async def rebound(session: Session, statement: Statement) -> Bound:
    """Returns the statement, bound again if the catalog or the cursor that it names may have changed. Raises if its columns differ."""
    old = statement.bound
    if old.catalog is session.catalog and not isinstance(old.statement, (s.Fetch, s.Execute)):
        return old
    bound = await bind_at(session, old.parsed, s.StatementText(old.text, old.position), statement.oids)
    if not isinstance(old.statement, (s.Fetch, s.Execute)):
        check_result(old, bound)
    statement.bound = bound
    session.statements[statement.name] = statement  # updates the charged size
    return bound


async def with_dimensions(session: Session, statement: Statement, bound: Bound) -> Bound:
    """Returns a bound statement with multidimensional types of its array parameters. Negative oids stand for them."""
    declared = [*statement.oids, *(0,) * (len(bound.parameters) - len(statement.oids))]
    oids = [-type.oid if type.is_array and not type.named else oid for oid, type in zip(declared, bound.parameters, strict=True)]
    shaped = await bind_at(session, bound.parsed, s.StatementText(bound.text, bound.position), oids)
    check_result(bound, shaped)
    return shaped


# --- statements that contain others --------------------------------------------------------------------------------------


async def _bind_inner(session: Session, bound: Bound, statement: s.CopyTo | s.DeclareCursor, oids: Sequence[int]) -> Bound:
    """Binds the query of a COPY or a cursor, which becomes `body`."""
    query = copied_query(statement, session.catalog) if isinstance(statement, s.CopyTo) else statement.statement
    body = await _bound(session, Bound(query, query, bound.text, bound.position, catalog=bound.catalog), oids)
    if body.columns is None and isinstance(query, WRITES):
        raise e.FeatureNotSupported("COPY query must have a RETURNING clause")
    return replace(bound, parameters=body.parameters, body=body)


async def _copy_to(session: Session, bound: Bound, statement: s.CopyTo, values: Sequence[object]) -> CopyOut:
    encoder = CopyEncoder(bound.body.columns or (), copy_options(statement), session.settings.style)
    if not isinstance(bound.body.statement, WRITES):
        return CopyOut(encoder, await push.begin(session, bound.body, values))
    written = await table_writes.begin(session, bound.body, bound.body.statement, values)
    assert not isinstance(written, str)
    return CopyOut(encoder, written.rows)


async def _prepare(session: Session, bound: Bound, statement: s.Prepare, values: Sequence[object]) -> str:
    if statement.name in session.statements:
        raise e.DuplicatePreparedStatement(f'prepared statement "{statement.name}" already exists')
    text = s.StatementText(statement.text, bound.position + max(bound.text.find(statement.text), 0))
    places = zip(statement.types, statement.positions, strict=True)
    oids = tuple(known_type(type, session.catalog, at).oid for type, at in places)
    inner = await bind(session, statement.statement, text, oids)
    session.statements.add(Statement(statement.name, statement.text.encode(), oids, inner, bound.text))
    return "PREPARE"


def _bind_execute(session: Session, bound: Bound, statement: s.Execute, oids: Sequence[int]) -> Bound:
    return replace(bound, columns=session.statements.find(statement.name).bound.columns)


async def _execute(session: Session, bound: Bound, statement: s.Execute, values: Sequence[object]) -> Result:
    inner, arguments = await _called(session, statement)
    check_result(bound, inner)
    return await begin(session, inner, arguments)


async def _bind_explain(session: Session, bound: Bound, statement: s.Explain, oids: Sequence[int]) -> Bound:
    bound, target, begin = explain.bind(session, bound, statement), statement.target, perf_counter()
    if isinstance(target, s.CreateTableAs):
        target = s.Select(target.query) if isinstance(target.query, s.QueryText) else target.query
    if not isinstance(target, explain.EXPLAINED):
        return bound
    inner = await _bound(session, Bound(target, target, bound.text, bound.position, catalog=bound.catalog), oids)
    return explain.planned(bound, inner, perf_counter() - begin)


async def _explain(session: Session, bound: Bound, statement: s.Explain, values: Sequence[object]) -> Result:
    target = statement.target
    if isinstance(target, s.CreateTableAs):
        create_table_as.exists(session, target)
        target = target.query if isinstance(target.query, s.Execute) else target
    if isinstance(target, s.Execute):
        inner, values = await _called(session, target)
        bound = explain.planned(bound, inner)
    return await explain.run(session, bound, statement, values)


async def _create_table_as(session: Session, bound: Bound, statement: s.CreateTableAs, values: Sequence[object]) -> str:
    if not isinstance(statement.query, s.Execute):
        return await create_table_as.run(session, bound, statement, values)
    if create_table_as.exists(session, statement):
        return create_table_as.TAG
    inner, values = await _called(session, statement.query)
    statement, bound = await create_table_as.of_prepared(session, bound, statement, inner)
    tag = await create_table_as.run(session, bound, statement, values)
    return tag if statement.with_data else "SELECT 0"  # as in PostgreSQL


async def _do(session: Session, bound: Bound, statement: s.Do, values: Sequence[object]) -> str:
    await run.run(session, statement.block, Statements(session, bind, begin))
    return "DO"


async def _called_in(session: Session, text: str, oids: Sequence[int], *, calls: bool) -> Bound | None:
    """Returns a query, bound with the rows of temporary functions in place of their calls, or None without calls."""
    called = await functions.with_rows(session, text, Statements(session, bind, begin), calls=calls)
    if called == text:
        return None
    ((statement, _),) = await session.gateway.texts.read(called, "postgresql", session.client.database)
    return await _bound(session, Bound(statement, statement, called, catalog=session.catalog), oids)


async def _called(session: Session, statement: s.Execute) -> tuple[Bound, list[object]]:
    """Returns the statement that EXECUTE names, bound in the current catalog, and the values of its parameters."""
    prepared = session.statements.find(statement.name)
    check_failed(session, prepared.bound.statement)
    arguments: list[tuple[object, Type]] = []
    if statement.arguments is not None:
        arguments = await time_expressions.arguments(session, statement.arguments)
    inner = await rebound(session, prepared)
    if len(arguments) != len(inner.parameters):
        raise e.SyntaxError_(
            f'wrong number of parameters for prepared statement "{statement.name}"',
            detail=f"Expected {len(inner.parameters)} parameters but got {len(arguments)}.",
        )
    try:
        return inner, _converted(session, arguments, inner)
    except Multidimensional:
        inner = await with_dimensions(session, prepared, inner)
        return inner, _converted(session, arguments, inner)


def _converted(session: Session, arguments: Sequence[tuple[object, Type]], bound: Bound) -> list[object]:
    """Returns the arguments of EXECUTE as the statement's parameters."""
    pairs, style = zip(arguments, bound.parameters, strict=True), session.settings.style
    return [time_expressions.converted(value, source, type, style) for (value, source), type in pairs]


# --- the table -----------------------------------------------------------------------------------------------------------

EXECUTORS: dict[type, Executor] = {
    s.Select: Executor(queries.select, queries.bind_select),
    s.Tail: Executor(queries.follow, queries.bind_tail),
    s.FollowKsqldb: Executor(push.follow, push.bind),
    s.PullKsqldb: Executor(pull.run, pull.bind),
    s.CopyTo: Executor(_copy_to, _bind_inner),
    s.Insert: Executor(table_writes.begin, table_writes.bind),
    s.Update: Executor(table_writes.begin, table_writes.bind),
    s.Delete: Executor(table_writes.begin, table_writes.bind),
    s.Merge: Executor(table_writes.begin, table_writes.bind),
    s.WithWrites: Executor(table_writes.begin, table_writes.bind),
    s.Truncate: Executor(table_writes.begin, table_writes.bind),
    LongWrite: Executor(table_writes.begin, table_writes.bind),
    s.CopyFrom: Executor(copy_in.run, copy_in.bind),
    s.AlterTable: Executor(or_alone(temporary_changes.alter)),
    s.CreateTableAs: Executor(_create_table_as, create_table_as.bind),
    s.DeclareCursor: Executor(cursors.declare, _bind_inner),
    s.Fetch: Executor(cursors.fetch, cursors.bind),
    s.CloseCursor: Executor(cursors.close),
    s.FetchSubscription: Executor(subscriptions.fetch, subscriptions.bind_fetch),
    s.Acknowledge: Executor(subscriptions.acknowledge, subscriptions.bind_acknowledge),
    s.Silence: Executor(silences.run),
    s.AlterSystem: Executor(commands.alter_system),
    s.Show: Executor(show.run, show.bind),
    s.Explain: Executor(_explain, _bind_explain),
    s.Print: Executor(printing.run, printing.bind),
    s.Prepare: Executor(_prepare),
    s.Execute: Executor(_execute, _bind_execute),
    s.Deallocate: Executor(commands.deallocate),
    s.Do: Executor(_do),
    s.CreateTemporaryFunction: Executor(functions.create),
    s.Begin: Executor(transactions.begin),
    s.Commit: Executor(transactions.end),
    s.Rollback: Executor(transactions.end),
    s.Savepoint: Executor(transactions.savepoint),
    s.Release: Executor(transactions.release),
    s.RollbackTo: Executor(transactions.rollback_to),
    s.Set: Executor(commands.set_value),
    s.SetConstraints: Executor(constraints.set_mode),
    s.Reset: Executor(commands.reset),
    s.Discard: Executor(commands.discard),
    s.Define: Executor(commands.define),
    s.CreateExtension: Executor(commands.create_extension),
    s.CommentOnExtension: Executor(commands.comment_on_extension),
    s.DropAbsent: Executor(commands.drop_absent),
    s.Listen: Executor(commands.listen),
    s.Unlisten: Executor(commands.unlisten),
    s.Notify: Executor(commands.notify),
    s.Refresh: Executor(maintenance.refresh),
    s.Vacuum: Executor(maintenance.vacuum),
    s.Reindex: Executor(maintenance.reindex),
    s.Cluster: Executor(maintenance.cluster),
    s.Checkpoint: Executor(maintenance.checkpoint),
    s.Lock: Executor(maintenance.lock),
    **dict.fromkeys(catalog_changes.CHANGING, Executor(or_alone(catalog_changes.run))),
    s.DropFunction: Executor(or_alone(functions.drop)),
    s.ControlQueries: Executor(push.control),
    s.AlterSettings: Executor(or_alone(commands.alter_settings)),
    s.Comment: Executor(or_alone(commands.comment)),
    s.CreateIndex: Executor(or_alone(temporary_changes.create_index)),
    s.AlterDomain: Executor(or_alone(changes.alter_domain)),
    s.CreateToken: Executor(or_alone(tokens.create), tokens.bind),
}
