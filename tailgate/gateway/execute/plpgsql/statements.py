"""The statements of SQL in a block. Each is bound when it runs, and sees the changes of those before it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from tailgate.gateway.execute import committing
from tailgate.gateway.results.copying import Result
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.parsing import ParsedStatement
from tailgate.gateway.session.statements.portals import Bound
from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import FeatureNotSupported, UndefinedParameter
from tailgate.lake.types import Type
from tailgate.sql import statements as s
from tailgate.values.registry import read_text
from tailgate.values.stored import stored

Values = Sequence[tuple[Type, str | None]]  # of parameters, with texts as in `variables`
Bind = Callable[[Session, ParsedStatement, s.StatementText, Sequence[int]], Awaitable[Bound]]
Begin = Callable[[Session, Bound, Sequence[object]], Awaitable[Result]]
TRANSACTIONS = (s.Begin, s.Commit, s.Rollback, s.Savepoint, s.Release, s.RollbackTo)


class Statements:
    """Binds and runs statements in a session. `bind` and `begin`: as those of `handlers.dispatch`."""

    def __init__(self, session: Session, bind: Bind, begin: Begin) -> None:
        self._session, self._bind, self._begin = session, bind, begin

    @property
    def catalog(self) -> Catalog:
        """Returns the catalog as the block sees it."""
        return self._session.catalog

    async def read(self, text: str) -> ParsedStatement | None:
        """Parses a statement. Returns None for an empty text."""
        parsed = await self._parsed(text)
        return None if parsed is None else parsed[0]

    async def _parsed(self, text: str) -> tuple[ParsedStatement, s.StatementText] | None:
        parts = await self._session.gateway.texts.read(text, "postgresql", self._session.client.database)
        if len(parts) > 1:
            raise FeatureNotSupported("EXECUTE of several statements is not supported")
        if parts:
            _check(parts[0][0])
        return parts[0] if parts else None

    async def bind(self, text: str, values: Values) -> Bound:
        """Binds a statement that is not empty."""
        parsed = await self._parsed(text)
        assert parsed is not None
        return await self._bound(*parsed, values)

    async def _bound(self, statement: ParsedStatement, text: s.StatementText, values: Values) -> Bound:
        await self._session.naming.catch_up()
        return await self._bind(self._session, statement, text, [_oid(type, value) for type, value in values])

    async def run(self, text: str, values: Values) -> Result:
        """Binds and runs a statement. Raises the errors of its commit, too."""
        parsed = await self._parsed(text)
        if parsed is None:
            return ""
        bound = await self._bound(*parsed, values)
        if len(bound.parameters) > len(values):
            at = re.search(rf"\${len(values) + 1}\b", bound.text)
            raise UndefinedParameter(f"there is no parameter ${len(values) + 1}", position=at and at.start())
        types = zip(values, bound.parameters, strict=False)
        arguments = [None if value is None else stored(read_text(value, type), type) for (_, value), type in types]
        result = await self._begin(self._session, bound, arguments)
        await committing.settle(self._session)
        return result


def _oid(type: Type, value: str | None) -> int:
    """Returns the oid of a parameter; a negative one stands for an array of several dimensions."""
    return -type.oid if type.is_array and value is not None and value.startswith(("{{", "[")) else type.oid


def _check(statement: ParsedStatement) -> None:
    """Raises 0A000 for statements that a block of DO cannot contain."""
    if isinstance(statement, TRANSACTIONS):
        raise FeatureNotSupported("EXECUTE of transaction commands is not implemented")
    if isinstance(statement, s.CopyTo | s.CopyFrom):
        raise FeatureNotSupported("cannot COPY to/from client in PL/pgSQL")
    if isinstance(statement, s.CreateTableAs) and statement.select_into:
        hint = "You might want to use EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS instead."
        raise FeatureNotSupported("EXECUTE of SELECT ... INTO is not implemented", hint=hint)
    for kind, words in ((s.Do, "DO"), (s.Tail, "TAIL"), (s.CreateTemporaryFunction, "a temporary function")):
        if isinstance(statement, kind):
            raise FeatureNotSupported(f"{words} in DO is not supported")
