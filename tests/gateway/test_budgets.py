"""Bytes that clients make a gateway hold are counted until they are gone."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import duckdb
import pyarrow as pa
import pytest

from tailgate.gateway.resources import garbage
from tailgate.gateway.resources.budgets import TASK_BUDGET, UNNAMED_FREE, Budget, Cache, Charge, ChargedDict
from tailgate.gateway.resources.memory import LEAST, Memory, parsed
from tailgate.gateway.server.pressure import Pressure
from tailgate.gateway.serving.fetching import CHARGED_MIN, fetched
from tailgate.gateway.session import access as accesses
from tailgate.gateway.session import gateway as gateways
from tailgate.gateway.session.access import Access
from tailgate.gateway.session.gateway import Gateway
from tailgate.gateway.session.statements.parsing import read
from tailgate.gateway.session.statements.portals import PORTAL_BYTES, Bound, Portal
from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import OutOfMemory


def levels(whole: int = 100, role: int = 60, session: int = 40) -> tuple[Budget, Budget, Budget]:
    gateway = Budget("the gateway", whole)
    roles = Budget("the role", role, gateway)
    return gateway, roles, Budget("the session", session, roles)


def test_a_charge_counts_at_every_level() -> None:
    gateway, role, session = levels()
    session.charge(40)
    with pytest.raises(OutOfMemory, match="out of memory") as raised:
        session.charge(1)
    assert raised.value.detail == "Memory of the session: 40 bytes are used and 1 more are needed; the limit is 40."
    other = Budget("the session", 40, role)
    other.charge(20)
    with pytest.raises(OutOfMemory):
        other.charge(1)  # of the role
    assert (gateway.used, role.used, session.used, other.used) == (60, 60, 40, 20)
    session.release(40)
    other.charge(20)
    assert gateway.used == 40


def test_a_closed_session_holds_no_memory() -> None:
    gateway, role, session = levels()
    session.charge(30)
    session.close()
    session.release(30)  # somebody frees it late
    assert (gateway.used, role.used) == (0, 0)
    with pytest.raises(OutOfMemory):
        session.charge(1)


def test_caches_give_way() -> None:
    gateway, _, session = levels()
    evicted: list[str] = []
    cache: Cache[str, int] = Cache(gateway, 80, lambda key, value: evicted.append(key))
    for name in "abcd":
        cache.put(name, 1, 20)
    assert cache.get("a") == 1
    session.charge(40)  # only 20 are left
    assert evicted == ["b"]
    assert (cache.bytes, gateway.used) == (60, 100)
    cache.put("e", 1, 40)  # more than the cache may hold, with the others
    assert evicted == ["b", "c", "d"]
    cache.put("f", 1, 81)
    assert cache.get("f") is None
    cache.clear()
    assert gateway.used == 40


def test_named_statements_are_charged() -> None:
    gateway, _, session = levels(10 * UNNAMED_FREE, 10 * UNNAMED_FREE, 4 * UNNAMED_FREE)
    statements: ChargedDict[int] = ChargedDict(lambda value: value)
    statements.budget = session
    statements[""] = UNNAMED_FREE
    assert session.used == 0
    statements["a"] = UNNAMED_FREE
    statements["a"] = 2 * UNNAMED_FREE
    assert session.used == 2 * UNNAMED_FREE
    with pytest.raises(OutOfMemory):
        statements["b"] = 3 * UNNAMED_FREE
    assert "b" not in statements
    statements[""] = 2 * UNNAMED_FREE
    assert session.used == 4 * UNNAMED_FREE
    assert statements.pop("a") == 2 * UNNAMED_FREE
    assert statements.pop("nothing", None) is None
    statements.clear()
    assert gateway.used == 0


def test_changes_are_charged_once() -> None:
    gateway, _, session = levels()
    charged = Charge(session)
    for size in (10, 40, 5):
        charged.set(size)
        assert gateway.used == size
    with pytest.raises(OutOfMemory):
        charged.add(36)
    assert (charged.size, gateway.used) == (5, 5)


def test_many_threads() -> None:
    gateway, _, session = levels(1 << 40, 1 << 40, 1 << 40)

    def work() -> None:
        for _ in range(2000):
            session.charge(3)
            session.release(3)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (gateway.used, session.used) == (0, 0)


def test_results_are_charged_until_they_are_gone() -> None:
    gateway, _, session = levels(8 << 20, 8 << 20, 4 << 20)
    connection = duckdb.connect(config={"threads": 1})
    token = TASK_BUDGET.set(session)
    try:
        small = fetched(connection.execute("SELECT 1"), pa.schema([("x", pa.int32())]))
        assert (small.num_rows, gateway.used) == (1, 0)
        table = fetched(connection.execute("SELECT range AS x FROM range(100000)"))
        assert gateway.used >= table.nbytes > CHARGED_MIN
        with pytest.raises(OutOfMemory):
            fetched(connection.execute("SELECT range AS x FROM range(1000000000)"))
        assert gateway.used == table.nbytes
        del table
        gc.collect()
        assert gateway.used == 0
    finally:
        TASK_BUDGET.reset(token)


def test_the_memory_of_a_gateway() -> None:
    memory = Memory(LEAST)
    assert memory.duckdb + memory.catalog + memory.clients < memory.total
    assert memory.session <= memory.clients
    for text in ("2", "GB", "-1GB", "900MB", "1TB", "2 G"):
        with pytest.raises(ValueError, match=r"is not a size|is too little"):
            parsed(text)


class Cycle:
    """An object that only the garbage collector frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def collector() -> Iterator[None]:
    """Restores the settings of the garbage collector."""
    callbacks, thresholds = list(gc.callbacks), gc.get_threshold()
    yield
    gc.enable()
    gc.callbacks[:] = callbacks
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def frozen_garbage() -> weakref.ref[Cycle]:
    """Returns a reference to a cycle that a collection has frozen and that nothing else refers to."""
    garbage.freeze_survivors()
    cycle = Cycle()
    gc.collect()
    return weakref.ref(cycle)


def check_examined_after_growth(alive: weakref.ref[Cycle], collect: Callable[[], object]) -> None:
    """Checks that garbage which is frozen is collected by the second full collection after the memory in use has grown."""
    gc.disable()
    more = [[None] for _ in range(garbage.GROWTH * sys.getallocatedblocks() // 2)]  # 2 blocks each
    collect()
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert alive() is None
    assert gc.get_freeze_count() > len(more)


@pytest.mark.usefixtures("collector")
def test_survivors_of_a_full_collection_are_examined_again_when_the_memory_in_use_has_grown() -> None:
    alive = frozen_garbage()
    gc.collect()
    assert alive() is not None, "the collector examines all objects each time"
    check_examined_after_growth(alive, gc.collect)


@pytest.mark.usefixtures("collector")
def test_survivors_of_a_middle_collection_are_examined_again_when_the_memory_in_use_has_grown() -> None:
    garbage.freeze_survivors()
    garbage.collect_new()  # its survivors become permanent: the memory in use is that of the last full collection
    cycle = Cycle()
    alive = weakref.ref(cycle)
    gc.disable()
    garbage.collect_new()
    frozen = gc.get_freeze_count()
    del cycle
    garbage.collect_new()
    assert alive() is not None
    assert gc.get_freeze_count() >= frozen > 0

    def collect_twice() -> None:
        garbage.collect_new()
        garbage.collect_new()  # freezes nothing: the next full collection examines all

    check_examined_after_growth(alive, collect_twice)


@pytest.mark.usefixtures("collector")
def test_a_collection_examines_few_new_objects() -> None:
    examined: list[int] = []

    def began(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] >= garbage.MIDDLE:
            examined.append(len(gc.get_objects()))

    garbage.freeze_survivors()
    gc.callbacks.append(began)
    objects = [[None] for _ in range(50_000)]
    assert len(objects) > len(examined) > 1
    assert max(examined) < 6_000


@pytest.mark.usefixtures("collector")
def test_garbage_in_frozen_cycles_is_collected_when_memory_is_short() -> None:
    """Few objects may have many bytes, such as the rows of a result."""
    alive = frozen_garbage()
    pressure = Pressure(Mock(memory=Memory(1 << 30), **{"budget.evict.return_value": 1}))
    pressure.look(1 << 29)
    assert alive() is not None
    pressure.look(1 << 30)
    assert alive() is None
    assert gc.get_freeze_count() > 0


def test_a_named_portal_is_as_large_as_its_statement() -> None:
    """The prepared statement may be replaced before the portal is closed."""
    ((statement, _),) = read("SELECT 1")
    bound = Bound(statement, statement, "x" * 5_000)
    assert bound.size > 500_000
    assert Portal("", bound).size == PORTAL_BYTES
    assert Portal("c", bound).size == PORTAL_BYTES + bound.size


def test_budgets_of_roles_without_sessions_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateways, "ROLES_MAX", 3)
    gateway = SimpleNamespace(memory=SimpleNamespace(role=100), budget=Budget("the gateway", 1000), _role_budgets={})

    def budget(role: int) -> Budget:
        return Gateway.budget_of(gateway, role, False)  # type: ignore[arg-type]

    budget(1).charge(10)
    for role in range(2, 10):
        budget(role)
    assert len(gateway._role_budgets) <= 3 and budget(1).used == 10


def test_answers_about_privileges_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accesses, "ANSWERS_MAX", 3)
    role, catalog = SimpleNamespace(superuser=True), Catalog()
    naming: Any = SimpleNamespace(seen=SimpleNamespace(catalog=catalog))
    access = Access(None, SimpleNamespace(get=lambda: role), naming)  # type: ignore[arg-type]
    monkeypatch.setattr(access, "_allows", lambda plan: True)
    for column in range(10):
        assert access.may(SimpleNamespace(demands=(column,)))  # type: ignore[arg-type]
    assert len(access._answers) <= 3
