"""INSERT, UPDATE, DELETE, TRUNCATE as a session meets them: bound once, run, answered with rows or a tag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from gateway.portals import Bound, TableRows, Tagged
from gateway.serving.prepared import BY_OID, UNSPECIFIED
from gateway.writing import committing
from lake.types import TEXT, UNKNOWN
from sql import statements as s
from sql.binding.writes import Writes
from sql.writes import BoundWrite, ChangeRows, InsertRows

if TYPE_CHECKING:
    from gateway.session import Session

Write: TypeAlias = s.Insert | s.Update | s.Delete | s.Truncate


def bind(bound: Bound, statement: Write, oids: Sequence[int]) -> Bound:
    """With its plans in `body`; columns are those of RETURNING. On any thread."""
    known = tuple(UNKNOWN if oid in UNSPECIFIED else BY_OID.get(oid, UNKNOWN) for oid in oids)
    assert bound.catalog is not None
    binder = Writes(bound.catalog, known)
    write: BoundWrite
    columns = None
    match statement:
        case s.Insert():
            write = binder.insert(statement)
            columns = write.returning.columns if write.returning is not None else None
        case s.Update():
            write = binder.update(statement)
            columns = write.returning
        case s.Delete():
            write = binder.delete(statement)
            columns = write.returning
        case s.Truncate():
            write = binder.truncate(statement)
    parameters = tuple(TEXT if t == UNKNOWN else t for t in write.parameters)
    return replace(bound, columns=columns, parameters=parameters, body=write)


async def begin(session: Session, bound: Bound, values: Sequence[object]) -> Tagged | str:
    write: BoundWrite = bound.body
    effect = await committing.run(session, write, values)
    match write:
        case InsertRows():
            word = "INSERT 0"
        case ChangeRows(updates=updates):
            word = "UPDATE" if updates else "DELETE"
        case _:
            return "TRUNCATE TABLE"
    if bound.columns is None or effect.returned is None:
        return f"{word} {effect.count}"
    return Tagged(TableRows(bound.columns, effect.returned), word)
