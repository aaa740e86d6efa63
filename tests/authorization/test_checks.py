"""Tests that the noninterference test detects missing checks.

Each test disables one check; the attack must then find a leak or a change.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailgate.engine import ddl
from tailgate.gateway.catalog.catalog_query import CatalogQuery
from tailgate.gateway.execute import catalog_changes as gateway_ddl
from tailgate.gateway.execute import subscriptions, time_expressions
from tailgate.gateway.security import ownership
from tailgate.gateway.session import access, activity, session
from tailgate.lake import errors
from tailgate.sql import authorization
from tailgate.sql.authorization import Followed, shared
from tailgate.sql.binding import tables
from tests.authorization.attack import Attack, Leak

STATEMENTS_MAX = 6_000  # limit of the statements, after which a disabled check counts as undetected
Patch = pytest.MonkeyPatch


def reads(patch: Patch) -> None:
    """Disables the check of plans."""
    patch.setattr(authorization, "_check", lambda *_: None)


def views(patch: Patch) -> None:
    """Disables the check of the relations that views read."""
    below = tables.Names.below
    patch.setattr(tables.Names, "below", lambda self, view: replace(below(self, view), demands={}))


def functions(patch: Patch) -> None:
    """Checks the relations that a function reads for its caller only."""
    within = tables.Names.within
    patch.setattr(tables.Names, "within", lambda self, function: replace(within(self, function), readers=self.readers))


def callers(patch: Patch) -> None:
    """Checks the relations that a function reads for its owner only."""
    within = tables.Names.within
    patch.setattr(tables.Names, "within", lambda self, function: replace(within(self, function), readers=(function.id,)))


def definitions(patch: Patch) -> None:
    """Disables the check of definitions; later reads are still checked."""
    patch.setattr(ddl, "check_definitions", lambda *_: None)


def changes(patch: Patch) -> None:
    """Disables the check that changes need ownership."""
    patch.setattr(gateway_ddl, "check_change", lambda *_: None)


def owners(patch: Patch) -> None:
    """Disables the check that replacements need ownership."""
    patch.setattr(ownership._Check, "_target", lambda *_: None)
    patch.setattr(ownership._Check, "_functions", lambda *_: ())


def names(patch: Patch) -> None:
    """Checks the names that the session sees, but lets the engine resolve the statement without temporary views."""
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
    """Evaluates arguments of EXECUTE and times without any check of privileges."""

    async def row(session: Any, text: Any) -> list[Any]:
        plan = shared(session.serving.prepare(text, (), session.naming.seen))
        return [column[0].as_py() for column in (await session.serving.run(plan)).columns]

    patch.setattr(time_expressions, "arguments", row)


def ready_bytes(patch: Patch) -> None:
    """Returns cached results to every role."""
    patch.setattr(access.Access, "may", lambda *_: True)


def status(patch: Patch) -> None:
    """Shows errors of views, sources and sinks to every role."""
    patch.setattr(session.Session, "may_see", lambda *_: True)


def verifiers(patch: Patch) -> None:
    """Shows the whole system catalog to every role."""
    patch.setattr(CatalogQuery, "demands", ())


def sessions(patch: Patch) -> None:
    """Shows the statements of all sessions to every role."""
    patch.setattr(activity, "_may_see", lambda *_: True)


def roles(patch: Patch) -> None:
    """Allows SET ROLE to any role."""
    find = access.Access.find

    def found(self: Any, wanted: str) -> Any:
        with contextlib.suppress(errors.InsufficientPrivilege):
            return find(self, wanted)
        return self._session.serving.catalog.find_role(wanted)

    patch.setattr(access.Access, "find", found)


def subscribers(patch: Patch) -> None:
    """Allows FETCH FROM SUBSCRIPTION to every role."""
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
