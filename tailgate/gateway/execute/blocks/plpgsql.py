"""Runs the block of DO.

Outside a transaction, the statements of the block are one. A block with EXCEPTION is a subtransaction: an error that it handles undoes
the statements of its body. A statement that cannot be a part of a transaction commits those before it (`blocks.alone`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count

from tailgate.gateway.encode.rows import RowEncoder
from tailgate.gateway.execute.blocks import commits, transactions
from tailgate.gateway.results.copying import CopyOut, Result
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.parsing import ParsedStatement
from tailgate.gateway.session.transactions import State
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
from tailgate.lake.types import BOOL
from tailgate.sql import statements as s
from tailgate.sql.lexer.secret_masking import mask_secrets
from tailgate.sql.lexer.tokens import Token, tokens
from tailgate.sql.plpgsql.conditions import matches
from tailgate.sql.plpgsql.nodes import Block, Dynamic, If, Node, Perform, Raise, Sql
from tailgate.values.registry import read_text

Execute = Callable[[str], Awaitable[Result]]  # runs a statement of SQL
DISCARDING = "If you want to discard the results of a SELECT, use PERFORM instead."
TRANSACTIONS = (s.Begin, s.Commit, s.Rollback, s.Savepoint, s.Release, s.RollbackTo)
FUNCTION = "PL/pgSQL function inline_code_block"
SHOWN_MAX = 4096  # characters of a statement in the context of an error; masking a longer text would block other sessions
WORDS = re.compile("sqlerrm|sqlstate", re.IGNORECASE)


async def run(session: Session, block: Block, execute: Execute) -> None:
    """Runs a block in the session's transaction, or in one that it commits."""
    alone = session.transaction.state is State.IDLE
    session.imply()
    await _Run(session, execute).block(block)
    if alone and session.transaction.state is State.IMPLICIT:
        await commits.commit_implicit(session)


def check(statement: ParsedStatement) -> None:
    """Raises 0A000 for statements that a block of DO cannot contain."""
    if isinstance(statement, TRANSACTIONS):
        raise FeatureNotSupported("EXECUTE of transaction commands is not implemented")
    if isinstance(statement, s.CopyTo | s.CopyFrom):
        raise FeatureNotSupported("cannot COPY to/from client in PL/pgSQL")
    if isinstance(statement, s.CreateTableAs) and statement.select_into:
        hint = "You might want to use EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS instead."
        raise FeatureNotSupported("EXECUTE of SELECT ... INTO is not implemented", hint=hint)
    if isinstance(statement, s.Do | s.Tail):
        raise FeatureNotSupported(f"{'DO' if isinstance(statement, s.Do) else 'TAIL'} in DO is not supported")


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
            try:
                await self._all(handler.body)
            finally:
                self._handled.pop()
        else:
            self._release(name)

    def _release(self, name: str) -> None:
        """Removes a savepoint, unless a statement that runs alone has ended its transaction."""
        with suppress(InvalidSavepointSpecification):
            transactions.remove(self._session, name)

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
                    if await self._rows(self._replaced(node.text), "SQL statement", where, node.text) is not None:
                        hint = None if node.text.lower().startswith(("insert", "update", "delete")) else DISCARDING
                        raise SyntaxError_("query has no destination for result data", hint=hint, where=where)
                case Perform():
                    await self._rows(self._replaced(node.text), "SQL statement", f"{FUNCTION} line {node.line} at PERFORM", node.text)
                case Dynamic():
                    where = f"{FUNCTION} line {node.line} at EXECUTE"
                    text = await self._value(node.expression, where)
                    if text is None:
                        raise NullValueNotAllowed("query string argument of EXECUTE is null", where=where)
                    await self._rows(text, "SQL statement", where, text)
                case Raise():
                    await self._raise(node)

    async def _if(self, node: If) -> None:
        for branch in node.branches:
            where = f"{FUNCTION} line {node.line} at IF"
            value = await self._value(branch.condition, where)
            with _context(where):
                holds = value is not None and read_text(value, BOOL)
            if holds:
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
        values = [await self._value(argument, where) for argument in node.arguments]
        texts = ["<NULL>" if value is None else value for value in values]
        message = "".join(part for pair in zip(parts, [*texts, ""], strict=True) for part in pair).replace("\0", "%")
        if node.level == "EXCEPTION":
            raise RaiseException(message, where=where)
        self._session.notice(message, node.level, "01000" if node.level == "WARNING" else "00000", where=where)
        self._session.out.flush()  # as PostgreSQL does, and so that notices do not collect in memory
        await self._session.out.drain()
        await asyncio.sleep(0)

    async def _value(self, expression: str, where: str) -> str | None:
        """Returns the value of an expression as text, as a client gets it."""
        values = await self._rows(f"SELECT ({self._replaced(expression)})", "SQL expression", where, expression)
        return values[0] if values else None

    def _replaced(self, text: str) -> str:
        """Returns a text with the values of SQLERRM and SQLSTATE, which a handler has, except among the columns of INSERT."""
        if not (self._handled and WORDS.search(text)):
            return text
        values = {"sqlerrm": self._handled[-1].message, "sqlstate": self._handled[-1].sqlstate}
        row = tokens(text)
        for i in reversed(range(_columns_end(row), len(row))):
            token = row[i]
            if token.kind == "word" and token.value in values and (not i or row[i - 1].value not in (".", "as")):
                text = text[: token.position] + f"CAST({quoted_text(values[token.value])} AS text)" + text[token.end :]
        return text

    async def _rows(self, text: str, what: str, where: str, shown: str) -> list[str | None] | None:
        """Runs a statement to its end. Returns the first value of the first row as text, if there is one, or None without rows.

        `shown`: the statement in the context of errors.
        """
        with _context(where, what, shown):
            result = await self._execute(text)
            if isinstance(result, str):
                return None
            assert not isinstance(result, CopyOut)
            encoder = RowEncoder(result.columns[:1], (0,) * len(result.columns[:1]), self._session.settings.style)
            values: list[str | None] = []
            try:
                while not result.ended:
                    table = await result.fetch(None)
                    if not values and table.num_rows and table.num_columns:
                        value = encoder.field_values(table.slice(0, 1))[0][0]
                        values.append(None if value is None else value.decode())
            finally:
                await result.close()
        return values


def _columns_end(row: Sequence[Token]) -> int:
    """Returns the place after the list of columns of an INSERT, or 0."""
    words = [token.value for token in row]
    start = 5 if words[3:4] in (["."], ["as"]) else 3
    return words.index(")", start) if words[0] == "insert" and words[start : start + 1] == ["("] and ")" in words[start:] else 0


@contextmanager
def _context(where: str, what: str = "", statement: str = "") -> Iterator[None]:
    """Adds the context to errors that have none: the line of the code and, if there is one, the statement.

    Positions are in the text of an inner statement, so they are left out. As in PostgreSQL, such an error does not show the statement.
    """
    try:
        yield
    except TailgateError as error:
        if statement and error.position is None:
            where = f'{what} "{mask_secrets(statement[:SHOWN_MAX])}"\n{where}'
        error.where, error.position = error.where or where, None
        raise
