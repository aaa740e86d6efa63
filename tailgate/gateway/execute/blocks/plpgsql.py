"""Runs the block of DO.

Outside a transaction, the statements of the block are one. A block with EXCEPTION is a subtransaction: an error that it handles undoes
the statements of its body. A statement that cannot be a part of a transaction commits those before it (`blocks.alone`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import count

from tailgate.gateway.execute.blocks import commits, transactions
from tailgate.gateway.results.copying import CopyOut, Result
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.transactions import Move, State
from tailgate.lake.errors import (
    FeatureNotSupported,
    InvalidSavepointSpecification,
    NullValueNotAllowed,
    RaiseException,
    StackedDiagnosticsAccessedWithoutActiveHandler,
    SyntaxError_,
    TailgateError,
)  # fmt: skip
from tailgate.lake.keywords import quoted_text
from tailgate.sql import statements as s
from tailgate.sql.lexer.secret_masking import mask_secrets
from tailgate.sql.lexer.tokens import tokens
from tailgate.sql.plpgsql.conditions import matches
from tailgate.sql.plpgsql.nodes import Block, Dynamic, If, Node, Perform, Raise, Sql

Execute = Callable[[str], Awaitable[Result]]  # runs a statement of SQL
DISCARDING = "If you want to discard the results of a SELECT, use PERFORM instead."
NO_ROWS = object()  # the result of a statement that returns none
TRANSACTIONS = (s.Begin, s.Commit, s.Rollback, s.Savepoint, s.Release, s.RollbackTo)
FUNCTION = "PL/pgSQL function inline_code_block"
# Severity and SQLSTATE of messages, by the level of RAISE.
NOTICES = {
    "DEBUG": ("DEBUG", "00000"), "LOG": ("LOG", "00000"), "INFO": ("INFO", "00000"), "NOTICE": ("NOTICE", "00000"),
    "WARNING": ("WARNING", "01000"),
}  # fmt: skip


async def run(session: Session, block: Block, execute: Execute) -> None:
    """Runs a block in the session's transaction, or in one that it commits."""
    alone = session.transaction.state is State.IDLE
    session.imply()
    await _Run(session, execute).block(block)
    if alone and session.transaction.state is State.IMPLICIT:
        await commits.commit(session)
        session.transaction.move(Move.COMMIT)
        session.end_block(undo=False)


def check(statement: s.Statement) -> None:
    """Raises 0A000 for statements that a block of DO cannot contain."""
    if isinstance(statement, TRANSACTIONS):
        raise FeatureNotSupported("EXECUTE of transaction commands is not implemented")
    if isinstance(statement, s.CopyTo | s.CopyFrom):
        raise FeatureNotSupported("cannot COPY to/from client in PL/pgSQL")
    if isinstance(statement, s.Do):
        raise FeatureNotSupported("DO in DO is not supported")


class _Run:
    """A running block. `_handled`: the errors that handlers are handling, the innermost last."""

    def __init__(self, session: Session, execute: Execute) -> None:
        self._session, self._execute = session, execute
        self._numbers = count(1)
        self._handled: list[TailgateError] = []

    async def block(self, block: Block) -> None:
        if not block.handlers:
            await self._all(block.body)
            return
        name = f"{FUNCTION} {next(self._numbers)}"
        await transactions.save(self._session, name)
        try:
            await self._all(block.body)
        except TailgateError as error:
            handler = next((handler for handler in block.handlers if matches(error.sqlstate, handler.conditions)), None)
            if handler is None:
                self._release(name)
                raise
            await self._undo(name)
            self._handled.append(error)
            await self._all(handler.body)
            self._handled.pop()
        else:
            self._release(name)

    def _release(self, name: str) -> None:
        """Removes a savepoint, unless a statement that runs alone has ended its transaction."""
        with suppress(InvalidSavepointSpecification):
            self._session.transaction.back_to(name, keep=False)

    async def _undo(self, name: str) -> None:
        """Undoes the statements after a savepoint."""
        self._session.imply()
        with suppress(InvalidSavepointSpecification):
            await transactions.restore(self._session, name)
        self._release(name)

    async def _all(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            match node:
                case Block():
                    await self.block(node)
                case If():
                    await self._if(node)
                case Sql():
                    where = f"{FUNCTION} line {node.line} at SQL statement"
                    if await self._rows(self._replaced(node.text), "SQL statement", where) is not NO_ROWS:
                        hint = None if node.text.lower().startswith(("insert", "update", "delete")) else DISCARDING
                        raise SyntaxError_("query has no destination for result data", hint=hint, where=where)
                case Perform():
                    await self._rows(self._replaced(node.text), "SQL statement", f"{FUNCTION} line {node.line} at PERFORM")
                case Dynamic():
                    where = f"{FUNCTION} line {node.line} at EXECUTE"
                    text = await self._value(node.expression, where)
                    if text is None:
                        raise NullValueNotAllowed("query string argument of EXECUTE is null", where=where)
                    await self._rows(str(text), "SQL statement", where)
                case Raise():
                    await self._raise(node)

    async def _if(self, node: If) -> None:
        for branch in node.branches:
            if await self._value(branch.condition, f"{FUNCTION} line {node.line} at IF") is True:
                await self._all(branch.body)
                return
        await self._all(node.otherwise)

    async def _raise(self, node: Raise) -> None:
        where = f"{FUNCTION} line {node.line} at RAISE"
        if node.format is None:
            if not self._handled:
                message = "RAISE without parameters cannot be used outside an exception handler"
                raise StackedDiagnosticsAccessedWithoutActiveHandler(message, where=where)
            raise self._handled[-1]
        parts = node.format.replace("%%", "\0").split("%")
        values = [await self._value(argument, where, as_text=True) for argument in node.arguments]
        texts = ["<NULL>" if value is None else str(value) for value in values]
        message = "".join(part for pair in zip(parts, [*texts, ""], strict=True) for part in pair).replace("\0", "%")
        if node.level == "EXCEPTION":
            raise RaiseException(message, where=where)
        self._session.notice(message, *NOTICES[node.level], where=where)

    async def _value(self, expression: str, where: str, *, as_text: bool = False) -> object:
        """Evaluates an expression."""
        text = self._replaced(expression)
        query = f"SELECT CAST(({text}) AS text)" if as_text else f"SELECT ({text})"
        return await self._rows(query, "SQL expression", where, expression)

    def _replaced(self, text: str) -> str:
        """Returns a text with the values of SQLERRM and SQLSTATE, which a handler has."""
        if not self._handled:
            return text
        values = {"sqlerrm": self._handled[-1].message, "sqlstate": self._handled[-1].sqlstate}
        for token in reversed(tokens(text)):
            if token.kind == "word" and token.value in values:
                text = text[: token.position] + quoted_text(values[token.value]) + text[token.end :]
        return text

    async def _rows(self, text: str, what: str, where: str, shown: str | None = None) -> object:
        """Runs a statement to its end. Returns the first value of its rows, or NO_ROWS. `shown`: the text for the context of errors."""
        with _context(f'{what} "{mask_secrets(shown or text)}"\n{where}'):
            result = await self._execute(text)
            if isinstance(result, str):
                return NO_ROWS
            assert not isinstance(result, CopyOut)
            first = None
            try:
                while not result.ended:
                    table = await result.fetch(None)
                    if first is None and table.num_rows and table.num_columns:
                        first = table.column(0)[0].as_py()
            finally:
                await result.close()
        return first


class _context:
    """Adds the context to errors that have none.

    Positions are in the text of an inner statement, so they are left out. As in PostgreSQL, such an error does not show the statement.
    """

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, TailgateError):
            where = self._where if error.position is None else self._where.splitlines()[-1]
            error.where, error.position = error.where or where, None
