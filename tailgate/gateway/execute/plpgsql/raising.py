"""Executes RAISE and ASSERT: the messages and errors of a block."""

from __future__ import annotations

import asyncio

from tailgate.gateway.execute.plpgsql.evaluation import Evaluation, context
from tailgate.gateway.execute.plpgsql.variables import Scope
from tailgate.gateway.session.session import Session
from tailgate.lake import errors as e
from tailgate.lake.types import BOOL
from tailgate.sql.plpgsql.conditions import SQLSTATES
from tailgate.sql.plpgsql.nodes import Assert, Raise
from tailgate.sql.plpgsql.raises import is_sqlstate
from tailgate.values.registry import read_text

LETTERS = {"schema": "s", "table": "t", "column": "c", "datatype": "d", "constraint": "n"}  # of fields of the protocol
WARNING = "01000"
RAISED = "P0001"


async def raised(session: Session, evaluation: Evaluation, node: Raise, scope: Scope, where: str) -> None:
    """Executes a RAISE that names an error or has a format: sends a notice, or raises the error."""
    style = session.settings.style

    async def text(expression: str) -> str | None:
        return (await evaluation.value(expression, scope, where, style))[0]

    message, name_of_error, sqlstate = None, node.condition, node.sqlstate
    if node.format is not None:
        parts = node.format.replace("%%", "\0").split("%")
        values = [await text(argument) for argument in node.arguments]
        texts = ["<NULL>" if value is None else value for value in values]
        message = "".join(part for pair in zip(parts, [*texts, ""], strict=True) for part in pair).replace("\0", "%")
    options: dict[str, str] = {}
    for name, expression in node.options:
        value = await text(expression)
        if value is None:
            raise e.NullValueNotAllowed("RAISE statement option cannot be null", where=where)
        if name in options or (name == "message" and message is not None) or (name == "errcode" and sqlstate is not None):
            raise e.SyntaxError_(f"RAISE option already specified: {name.upper()}", where=where)
        options[name] = value
    if (name_of_error := options.get("errcode", name_of_error)) and sqlstate is None:
        sqlstate = name_of_error if is_sqlstate(name_of_error) else SQLSTATES.get(name_of_error)
        if sqlstate is None:
            raise e.UndefinedObject(f'unrecognized exception condition "{name_of_error}"', where=where)
    is_error = node.level == "EXCEPTION"
    sqlstate = sqlstate or (RAISED if is_error else WARNING if node.level == "WARNING" else "00000")
    message = options.get("message", message)
    message = (name_of_error or sqlstate) if message is None else message
    detail, hint = options.get("detail"), options.get("hint")
    names = {letter: options[name] for name, letter in LETTERS.items() if name in options}
    if is_error:
        error = e.of(sqlstate, message, detail=detail, hint=hint)
        error.where, error.names = where, names
        raise error
    session.notice(message, node.level, sqlstate, detail=detail, hint=hint, where=where)
    session.out.flush()  # as PostgreSQL does, and so that notices do not collect in memory
    await session.out.drain()
    await asyncio.sleep(0)


async def asserted(evaluation: Evaluation, node: Assert, scope: Scope, where: str) -> None:
    """Executes an ASSERT. Raises P0004."""
    if await holds(evaluation, node.condition, scope, where):
        return
    message = None if node.message is None else (await evaluation.value(node.message, scope, where))[0]
    raise e.AssertFailure(message or "assertion failed", where=where)


async def holds(evaluation: Evaluation, condition: str, scope: Scope, where: str) -> bool:
    """Returns whether a condition is true. A value of another type is converted as a text."""
    value, _ = await evaluation.value(condition, scope, where)
    with context(where):
        return value is not None and bool(read_text(value, BOOL))
