"""The noninterference test notices when a check is removed: each of these breaks one, and the attack then finds something."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine import ddl
from gateway import access, activity, ownership, session, subscriptions, times
from gateway import ddl as gateway_ddl
from gateway.catalog import CatalogQuery
from lake import errors
from sql import authorization
from sql.authorization import Followed, shared
from sql.binding import tables
from tests.authorization.attack import Attack, Leak

STATEMENTS_MAX = 6_000  # in all, before a broken check counts as unnoticed
Patch = pytest.MonkeyPatch


def reads(patch: Patch) -> None:
    """Nothing is asked of a plan."""
    patch.setattr(authorization, "_check", lambda *_: None)


def views(patch: Patch) -> None:
    """What a view reads is asked of nobody."""
    below = tables.Names.below
    patch.setattr(tables.Names, "below", lambda self, view: replace(below(self, view), demands={}))


def functions(patch: Patch) -> None:
    """A function reads with its caller's privileges alone."""
    within = tables.Names.within
    patch.setattr(tables.Names, "within", lambda self, function: replace(within(self, function), readers=self.readers))


def callers(patch: Patch) -> None:
    """A function reads with its owner's privileges alone."""
    within = tables.Names.within
    patch.setattr(tables.Names, "within", lambda self, function: replace(within(self, function), readers=(function.id,)))


def definitions(patch: Patch) -> None:
    """A definition may read anything; what reads it later is asked."""
    patch.setattr(ddl, "check_definitions", lambda *_: None)


def changes(patch: Patch) -> None:
    """Who changes something need not own it."""
    patch.setattr(gateway_ddl, "check_change", lambda *_: None)


def owners(patch: Patch) -> None:
    """The same, where something is replaced."""
    patch.setattr(ownership._Check, "_target", lambda *_: None)
    patch.setattr(ownership._Check, "_functions", lambda *_: ())


def names(patch: Patch) -> None:
    """Ownership is asked of what the session sees, temporary views first; the engine looks the names up again."""
    sent = gateway_ddl.sent

    async def late(session: Any, bound: Any, tell: Any = None) -> Any:
        with patch.context() as inner:
            path = tuple(p for p in session.catalog.path if not p.startswith("pg_temp"))
            resolve, check = gateway_ddl.resolve, gateway_ddl.check_change
            inner.setattr(gateway_ddl, "resolve", lambda text, catalog, base: resolve(text, base.along(path), base))
            inner.setattr(
                gateway_ddl, "check_change", lambda statement, role, catalog, database: check(statement, role, session.catalog, database)
            )
            return await sent(session, bound, tell)

    patch.setattr(gateway_ddl, "sent", late)


def arguments(patch: Patch) -> None:
    """Arguments of EXECUTE and times are evaluated as anything else, for nobody in particular."""

    async def row(session: Any, text: Any) -> list[Any]:
        plan = shared(session.serving.prepare(text, (), session.naming.seen))
        return [column[0].as_py() for column in (await session.serving.run(plan)).columns]

    patch.setattr(times, "arguments", row)


def ready_bytes(patch: Patch) -> None:
    """Bytes that are ready are for everybody."""
    patch.setattr(access.Access, "may", lambda *_: True)


def status(patch: Patch) -> None:
    """Errors of views, sources and sinks are for everybody."""
    patch.setattr(session.Session, "may_see", lambda *_: True)


def verifiers(patch: Patch) -> None:
    """The whole system catalog is for everybody."""
    patch.setattr(CatalogQuery, "demands", ())


def sessions(patch: Patch) -> None:
    """Statements of others' sessions are for everybody."""
    patch.setattr(activity, "_may_see", lambda *_: True)


def roles(patch: Patch) -> None:
    """SET ROLE to anybody."""
    find = access.Access.find

    def found(self: Any, wanted: str) -> Any:
        with contextlib.suppress(errors.InsufficientPrivilege):
            return find(self, wanted)
        return self._session.serving.catalog.find_role(wanted)

    patch.setattr(access.Access, "find", found)


def subscribers(patch: Patch) -> None:
    """FETCH FROM SUBSCRIPTION gives to everybody."""
    patch.setattr(subscriptions, "_authorized", lambda session, item: shared(Followed(session.serving.catalog[item.depends[0]])))


BROKEN = [
    reads,
    views,
    functions,
    callers,
    definitions,
    changes,
    owners,
    names,
    arguments,
    ready_bytes,
    status,
    verifiers,
    sessions,
    roles,
    subscribers,
]


@pytest.mark.long
@pytest.mark.parametrize("broken", BROKEN, ids=lambda f: f.__name__)
def test_a_check_that_is_removed_is_noticed(tmp_path: Path, seed: int, monkeypatch: Patch, broken: Callable[[Patch], None]) -> None:
    attack = Attack(tmp_path, seed)
    noticed: Exception | None = None
    try:
        broken(monkeypatch)
        attack.run(STATEMENTS_MAX)
    except (Leak, AssertionError) as error:
        noticed = error
    finally:
        monkeypatch.undo()
        attack.close()
    print(broken.__name__, sum(attack.kinds.values()), str(noticed)[:100])
    assert noticed is not None
