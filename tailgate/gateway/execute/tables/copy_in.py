"""COPY … FROM STDIN in a session: CopyInResponse, then data until CopyDone, then one write.

    COPY ──► 'G' ──► CopyData … ──► CopyDone ──► copy_data: rows ──► committing ──► COPY n
                        └─ CopyFail ──► 57014

All rows of a COPY are one transaction, so the gateway buffers the data, up to COPY_BYTES_MAX.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tailgate.gateway.encode.copying import CopyOptions
from tailgate.gateway.execute import committing
from tailgate.gateway.protocol import backend
from tailgate.gateway.protocol import messages as m
from tailgate.gateway.results.copying import copy_options
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.writes import copy_data
from tailgate.gateway.writes.copy_context import CopyInput
from tailgate.gateway.writes.plans import InsertPlan, insert_plan
from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import FeatureNotSupported, ProgramLimitExceeded, ProtocolViolation, QueryCanceled, TailgateError, UniqueViolation
from tailgate.lake.types import Field
from tailgate.sql import statements as s
from tailgate.sql.binder.writes.writes import Writes
from tailgate.sql.time_zones import in_zone

COPY_BYTES_MAX = 1 << 30  # of data of one COPY, which is buffered in memory


@dataclass(frozen=True, slots=True)
class CopyIn:
    """A bound COPY. `fields` are the columns in the data; `header` is '', 'skip' or 'match'."""

    write: InsertPlan
    fields: tuple[Field, ...]
    options: CopyOptions
    header: str


def copied(statement: s.CopyFrom, catalog: Catalog) -> tuple[InsertPlan, tuple[int, ...]]:
    """Returns the plan, and the numbers of the columns in the data."""
    with in_zone(catalog.time_zone):
        write, targets = Writes(catalog, None).copy(statement)
        return insert_plan(write), targets


def bind(session: Session, bound: Bound, statement: s.CopyFrom, oids: Sequence[int]) -> Bound:
    """Binds a COPY FROM STDIN. Raises 0A000 for unsupported options."""
    write, targets = copied(statement, session.catalog)
    header = ""
    others: s.Options = ()
    for name, value in statement.options:
        if name in ("force_null", "force_not_null", "freeze", "default"):
            raise FeatureNotSupported(f"COPY option {name.upper()} is not supported")
        if name == "header" and str(value).lower() == "match":
            header = "match"
        else:
            others += ((name, value),)
    options = copy_options(replace(statement, options=others))
    fields = tuple(write.table.columns[i] for i in targets)
    return replace(bound, body=CopyIn(write, fields, options, header or ("skip" if options.header else "")))


LETTERS: dict[type[m.Message], int] = {
    m.Query: 0x51, m.Parse: 0x50, m.Bind: 0x42, m.Describe: 0x44, m.Execute: 0x45, m.Close: 0x43, m.FunctionCall: 0x46,
}  # fmt: skip


async def run(session: Session, bound: Bound, statement: s.CopyFrom, values: Sequence[object]) -> str:
    """Receives the data of a COPY and writes its rows; returns the command tag."""
    copy: CopyIn = bound.body
    session.access.authorize(copy.write)
    committing.check_writable(session, copy.write, "COPY FROM")
    session.out.write(backend.copy_in_response(copy.options.format == "binary", len(copy.fields)))
    session.out.flush()
    sent = await _received(session, copy)
    rows, broken = await asyncio.to_thread(copy_data.rows, sent, copy.fields, session.settings.style)
    try:
        if broken is not None:
            await committing.check(session, copy.write, values, rows)
            raise broken
        effect = await committing.run(session, copy.write, values, rows)
    except TailgateError as error:
        if error.row is not None and error.where is None:
            # PostgreSQL checks keys after it has buffered many rows, when the text of lines is gone
            error.where = sent.row(error.row, shown=not isinstance(error, UniqueViolation))
        raise
    return f"COPY {effect.count}"


async def _received(session: Session, copy: CopyIn) -> CopyInput:
    """Receives the client's data up to CopyDone. Raises 57014 after CopyFail."""

    def sent() -> CopyInput:
        return CopyInput(copy.write.table.name, b"".join(parts), copy.options, copy.header)

    parts: list[bytes] = []
    size = 0
    while True:
        message = await session.out.message()
        match message:
            case m.CopyData(data):
                size += len(data)
                if size > COPY_BYTES_MAX:
                    raise ProgramLimitExceeded(f"COPY of more than {COPY_BYTES_MAX} bytes", hint="Send it in several COPY statements.")
                parts.append(data)
            case m.CopyDone():
                return sent()
            case m.CopyFail(reason):
                raise QueryCanceled(f"COPY from stdin failed: {reason}", where=sent().end())
            case m.Flush() | m.Sync():
                pass  # a client of the extended protocol may have sent them with Execute
            case m.Terminate():
                session.out.close()
                raise asyncio.CancelledError
            case _:
                message_type = f"unexpected message type 0x{LETTERS.get(type(message), 0):02X}"
                session.fail(ProtocolViolation(f"{message_type} during COPY from stdin", where=sent().end()))
                session.fatal(ProtocolViolation.sqlstate, "terminating connection because protocol synchronization was lost")
                raise asyncio.CancelledError
