"""Runs the block of DO, or that of a temporary function.

Outside a transaction, the statements of the block are one. A block with EXCEPTION is a subtransaction: an error that it handles undoes
the statements of its body. A statement that cannot be a part of a transaction commits those before it (`blocks.alone`).

Source: PostgreSQL 15, pl_exec.c for the order of evaluation and the wording of errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import TypeAlias

from typing_extensions import assert_never

from tailgate.gateway.execute.blocks import commits, transactions
from tailgate.gateway.execute.plpgsql.assignments import Assignments
from tailgate.gateway.execute.plpgsql.evaluation import CHANGING, Answer, Evaluation, context, cut
from tailgate.gateway.execute.plpgsql.raising import asserted, holds, raised
from tailgate.gateway.execute.plpgsql.statements import Statements
from tailgate.gateway.execute.plpgsql.variables import Named, Scope, Variable
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.transactions import State
from tailgate.lake import errors as e
from tailgate.lake.types import BOOL, INT4, INT8, TEXT, Type
from tailgate.sql.plpgsql import nodes as n
from tailgate.sql.plpgsql.conditions import DIAGNOSTICS, matches
from tailgate.sql.plpgsql.parser import ERROR_VARIABLES, SUBJECT

ROUNDS_MAX = 1_000_000  # of all loops of a block together
DISCARDING = "If you want to discard the results of a SELECT, use PERFORM instead."
ONE_ROW = "Make sure the query returns a single row, or use LIMIT 1."
FUNCTION = "PL/pgSQL function inline_code_block"
Ending: TypeAlias = n.Exit | n.Return | None  # what ends the statements around it, if anything does


async def run(session: Session, block: n.Block, statements: Statements, parameters: Sequence[n.Declaration] = ()) -> Mapping[str, Named]:
    """Runs a block in the session's transaction, or in one that it commits. Returns the parameters after it."""
    alone = session.transaction.state is State.IDLE
    session.imply()
    found = Variable("found", BOOL, "f")
    scope = Scope(None, Scope(None, None, {found.name: found}))
    await _Run(session, Evaluation(statements), found).call(block, parameters, scope)
    if alone and session.transaction.state is State.IMPLICIT:
        await commits.commit_implicit(session)
    return scope.names


def _where(line: int, what: str) -> str:
    return f"{FUNCTION} line {line} at {what}"


class _Run:
    """A running block. `_handled`: the errors that handlers are handling, the innermost last. `_row_count`: of the last statement.

    `_found`: the variable FOUND.
    """

    def __init__(self, session: Session, evaluation: Evaluation, found: Variable) -> None:
        self._session, self._evaluation, self._assignments = session, evaluation, Assignments(evaluation)
        self._found = found
        self._numbers = count(1)
        self._handled: list[e.TailgateError] = []
        self._rounds = self._row_count = 0

    async def call(self, block: n.Block, parameters: Sequence[n.Declaration], scope: Scope) -> None:
        """Runs the block of a function, whose parameters are variables of the scope."""
        await self._declare(parameters, scope)
        await self.block(block, scope)

    async def _declare(self, declarations: Sequence[n.Declaration], scope: Scope) -> None:
        for declaration in declarations:
            where = f"{FUNCTION} line {declaration.line} during statement block local variable initialization"
            await self._assignments.declare(declaration, scope, where)

    async def block(self, block: n.Block, outer: Scope) -> Ending:
        scope = Scope(block.label, outer)
        try:
            await self._declare(block.declarations, scope)
            ending = await (self._guarded(block, scope) if block.handlers else self._all(block.body, scope))
        finally:
            self._assignments.forget(*scope.names.values())
        ends_block = isinstance(ending, n.Exit) and ending.label is not None and ending.label == block.label
        return None if ends_block else ending

    async def _guarded(self, block: n.Block, scope: Scope) -> Ending:
        """Runs the body of a block with handlers."""
        name = f"{FUNCTION} {next(self._numbers)}"
        await transactions.save(self._session, name)
        try:
            ending = await self._all(block.body, scope)
        except e.TailgateError as error:
            handler = next((handler for handler in block.handlers if matches(error.sqlstate, handler.conditions)), None)
            if handler is None:
                self._release(name)
                raise
            await self._undo(name)
            self._handled.append(error)
            values = zip(ERROR_VARIABLES, (error.sqlstate, error.message), strict=True)
            try:
                return await self._all(handler.body, Scope(None, scope, {name: Variable(name, TEXT, value) for name, value in values}))
            finally:
                self._handled.pop()
        except BaseException:  # a cancellation
            self._release(name)
            raise
        self._release(name)
        return ending

    def _release(self, name: str) -> None:
        """Removes a savepoint, unless a statement that runs alone has ended its transaction."""
        with suppress(e.InvalidSavepointSpecification):
            transactions.remove(self._session, name)

    async def _undo(self, name: str) -> None:
        """Undoes the statements after a savepoint."""
        self._session.imply()
        try:
            with suppress(e.InvalidSavepointSpecification):
                await transactions.restore(self._session, name)
        finally:
            self._release(name)

    async def _all(self, nodes: Sequence[n.Node], scope: Scope) -> Ending:
        for node in nodes:
            ending = await self._statement(node, scope)
            if ending is not None:
                return ending
        return None

    async def _statement(self, node: n.Node, scope: Scope) -> Ending:
        match node:
            case n.Block():
                return await self.block(node, scope)
            case n.If() | n.Case():
                return await self._all(await self._chosen(node, scope), scope)
            case n.Loop() | n.ForInteger() | n.ForRows() | n.ForEach():
                return await self._loop(node, scope)
            case n.Exit():
                word = "CONTINUE" if node.continues else "EXIT"
                if node.condition is None or await holds(self._evaluation, node.condition, scope, _where(node.line, word)):
                    return node
            case n.Return():
                return node
            case n.Assign():
                where = _where(node.line, "assignment")
                value = await self._evaluation.value(node.expression, scope, where, assignment=node.text)
                with context(where):
                    await self._assignments.assign(scope.variable(node.target), value)
            case n.Diagnostics():
                with context(_where(node.line, f"GET {'STACKED ' * node.stacked}DIAGNOSTICS")):
                    for target, item in zip(node.targets, node.items, strict=True):
                        await self._assignments.assign(scope.variable(target), self._diagnosed(item))
            case n.Sql() | n.Perform() | n.Dynamic():
                await self._sql(node, scope)
            case n.Raise():
                await self._raise(node, scope)
            case n.Assert():
                await asserted(self._evaluation, node, scope, _where(node.line, "ASSERT"))
            case _:
                assert_never(node)
        return None

    def _diagnosed(self, item: str) -> tuple[str, Type]:
        """Returns the value of an item of GET DIAGNOSTICS. Raises 0Z002."""
        if item == "row_count":
            return str(self._row_count), INT8
        if not self._handled:
            message = "GET STACKED DIAGNOSTICS cannot be used outside an exception handler"
            raise e.StackedDiagnosticsAccessedWithoutActiveHandler(message)
        error, field = self._handled[-1], DIAGNOSTICS[item]
        return (error.names.get(field) if len(field) == 1 else getattr(error, field)) or "", TEXT

    # --- statements of SQL ---------------------------------------------------------------------------------------------------------

    async def _sql(self, node: n.Sql | n.Perform | n.Dynamic, scope: Scope) -> None:
        word = {n.Sql: "SQL statement", n.Perform: "PERFORM", n.Dynamic: "EXECUTE"}[type(node)]
        where, into = _where(node.line, word), None if isinstance(node, n.Perform) else node.into
        answer = await self._answer(node, scope, where, 2 if into is not None else 0)
        is_read = into is not None and isinstance(node, n.Sql) and answer.tag == "SELECT"
        self._row_count = min(answer.count, 1) if is_read else answer.count
        if isinstance(node, n.Perform) or (answer.tag in CHANGING and isinstance(node, n.Sql)):
            self._set_found(answer.count > 0)
        if into is not None:
            await self._into(into, answer, scope, where, is_static=isinstance(node, n.Sql))
        elif answer.columns is not None and isinstance(node, n.Sql):
            hint = None if answer.tag in CHANGING else DISCARDING
            raise e.SyntaxError_("query has no destination for result data", hint=hint, where=where)

    async def _answer(self, node: n.Sql | n.Perform | n.Dynamic, scope: Scope, where: str, kept: int | None) -> Answer:
        """Runs a statement."""
        if not isinstance(node, n.Dynamic):
            with context(where, f'SQL statement "{cut(node.text)}"'):
                return await self._evaluation.answer(node.text, scope, kept)
        style = self._session.settings.style
        text, _ = await self._evaluation.value(node.expression, scope, where, style)
        if text is None:
            raise e.NullValueNotAllowed("query string argument of EXECUTE is null", where=where)
        using = [await self._evaluation.value(expression, scope, where) for expression in node.using]
        with context(where, f'SQL statement "{cut(text)}"'):
            return await self._evaluation.run(text, [(type, value) for value, type in using], kept)

    async def _into(self, into: n.Into, answer: Answer, scope: Scope, where: str, *, is_static: bool) -> None:
        with context(where):
            if answer.columns is None:
                raise e.SyntaxError_("INTO used with a command that cannot return data")
            if not answer.count and into.strict:
                raise e.NoDataFound("query returned no rows")
            if answer.count > 1 and (into.strict or answer.tag in CHANGING):
                raise e.TooManyRows("query returned more than one row", hint=ONE_ROW if is_static else None)
            if is_static:
                self._set_found(answer.count > 0)
            await self._assignments.assign_row(into.targets, scope, answer, 0 if answer.count else None)

    def _set_found(self, found: bool) -> None:
        self._found.value = "t" if found else "f"

    async def _raise(self, node: n.Raise, scope: Scope) -> None:
        where = _where(node.line, "RAISE")
        if node.format is not None or node.condition is not None or node.options:
            await raised(self._session, self._evaluation, node, scope, where)
            return
        if not self._handled:
            message = "RAISE without parameters cannot be used outside an exception handler"
            raise e.StackedDiagnosticsAccessedWithoutActiveHandler(message, where=where)
        raise self._handled[-1]

    # --- conditions and loops ------------------------------------------------------------------------------------------------------

    async def _chosen(self, node: n.If | n.Case, scope: Scope) -> Sequence[n.Node]:
        """Returns the statements of the first condition that is true, or those of ELSE. Raises 20000."""
        where = _where(node.line, "IF" if isinstance(node, n.If) else "CASE")
        if isinstance(node, n.Case) and node.subject is not None:
            value, type = await self._evaluation.value(node.subject, scope, where)
            scope = Scope(None, scope, {SUBJECT: Variable(SUBJECT, type, value)})
        for branch in node.branches:
            if await holds(self._evaluation, branch.condition, scope, where):
                return branch.body
        if node.otherwise is None:
            raise e.CaseNotFound("case not found", hint="CASE statement is missing ELSE part.", where=where)
        return node.otherwise

    async def _loop(self, node: n.Loop | n.ForInteger | n.ForRows | n.ForEach, scope: Scope) -> Ending:
        match node:
            case n.Loop():
                where = _where(node.line, "WHILE")
                while node.condition is None or await holds(self._evaluation, node.condition, scope, where):
                    is_over, ending = await self._round(node, scope)
                    if is_over:
                        return ending
                return None
            case n.ForInteger():
                return await self._integers(node, scope)
            case n.ForRows():
                return await self._rows(node, scope)
        return await self._elements(node, scope)

    async def _round(self, node: n.Loop | n.ForInteger | n.ForRows | n.ForEach, scope: Scope) -> tuple[bool, Ending]:
        """Runs the body of a loop once. Returns whether the loop is over, and what ends the statements around it."""
        self._rounds += 1
        if self._rounds > ROUNDS_MAX:
            raise e.ProgramLimitExceeded("too many rounds of loops", hint=f"The loops of a block of DO can have {ROUNDS_MAX} rounds.")
        await asyncio.sleep(0)  # for other sessions, and for a cancel request
        ending = await self._all(node.body, scope)
        if isinstance(ending, n.Exit) and ending.label in (None, node.label):
            return not ending.continues, None
        return ending is not None, ending

    async def _integers(self, node: n.ForInteger, scope: Scope) -> Ending:
        where = _where(node.line, "FOR with integer loop variable")
        first = await self._bound(node.first, "lower bound", scope, where)
        last = await self._bound(node.last, "upper bound", scope, where)
        step = 1 if node.step is None else await self._bound(node.step, "BY value", scope, where)
        if step <= 0:
            raise e.InvalidParameterValue("BY value of FOR loop must be greater than zero", where=where)
        numbers, ending = range(first, last - 1, -step) if node.reverse else range(first, last + 1, step), None
        for number in numbers:
            inner = Scope(node.label, scope, {node.name: Variable(node.name, INT4, str(number))})
            is_over, ending = await self._round(node, inner)
            if is_over:
                break
        self._set_found(bool(numbers))
        return ending

    async def _bound(self, expression: str, what: str, scope: Scope, where: str) -> int:
        bound = Variable(what, INT4)
        value = await self._evaluation.value(expression, scope, where)
        with context(where):
            await self._assignments.assign(bound, value)
        self._assignments.forget(bound)
        if bound.value is None:
            raise e.NullValueNotAllowed(f"{what} of FOR loop cannot be null", where=where)
        return int(bound.value)

    async def _rows(self, node: n.ForRows, scope: Scope) -> Ending:
        where = _where(node.line, "FOR over EXECUTE statement" if isinstance(node.query, n.Dynamic) else "FOR over SELECT rows")
        answer = await self._answer(node.query, scope, where, None)
        with context(where):
            if answer.columns is None:
                raise e.InvalidCursorDefinition(f"cannot open {answer.tag} query as cursor")
            if not answer.count:
                await self._assignments.assign_row(node.targets, scope, answer, None)
        return await self._each(node, answer, node.targets, scope, where)

    async def _elements(self, node: n.ForEach, scope: Scope) -> Ending:
        where = _where(node.line, "FOREACH over array")
        value, type = await self._evaluation.value(node.expression, scope, where)
        if value is None:
            raise e.NullValueNotAllowed("FOREACH expression must not be null", where=where)
        if not type.is_array:
            raise e.DatatypeMismatch(f"FOREACH expression must yield an array, not type {type}", where=where)
        answer = await self._evaluation.run("SELECT unnest($1)", [(type, value)])
        return await self._each(node, answer, (node.target,), scope, where)

    async def _each(self, node: n.ForRows | n.ForEach, answer: Answer, targets: Sequence[n.Reference], scope: Scope, where: str) -> Ending:
        """Runs the body of a loop for each row of a result."""
        ending: Ending = None
        with self._evaluation.holding(answer):
            for number in range(answer.count):
                with context(where):
                    await self._assignments.assign_row(targets, scope, answer, number)
                is_over, ending = await self._round(node, scope)
                if is_over:
                    break
        self._set_found(answer.count > 0)
        return ending
