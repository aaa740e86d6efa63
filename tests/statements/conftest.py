"""Statements as a client sends them: a real engine and a gateway over one lake, without Kafka.

They start once for all tests of this folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest

from tailgate.lake.catalog import Domain, Function, MaterializedView, Table, UserType, View
from tailgate.lake.folder import Lake
from testing.engine_process import EngineProcess
from tests.tables.world import Served


@dataclass
class World:
    """An engine and a gateway over one lake."""

    engine: EngineProcess
    lake: Lake
    served: Served

    def connect(self, **words: object) -> psycopg.Connection:
        return psycopg.connect(self.served.dsn, autocommit=True, **words)  # type: ignore[arg-type]


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("statements")
    engine = EngineProcess(folder / "lake")
    engine.start()
    lake = Lake(folder / "lake")
    served = Served(lake)
    yield World(engine, lake, served)
    served.close()
    engine.stop()


@pytest.fixture
def sql(world: World) -> Iterator[psycopg.Connection]:
    """Yields a connection. Drops the objects that the test created."""
    before = {i.id for i in world.lake.catalog().visible}
    schemas = set(world.lake.catalog().schemas)
    with world.connect() as connection:
        yield connection
    with world.connect() as connection:
        for schema in world.lake.catalog().schemas.values():
            if schema.id not in schemas:
                connection.execute(f'DROP SCHEMA "{schema.name}" CASCADE')
        for item in world.lake.catalog().visible:
            if item.id not in before and isinstance(item, Table | View | MaterializedView) and item.id in world.lake.catalog().items:
                connection.execute(f'DROP {item.kind.upper()} IF EXISTS "{item.name}" CASCADE')
        for item in world.lake.catalog().visible:
            if item.id not in before and isinstance(item, Function):
                connection.execute(f"DROP FUNCTION IF EXISTS {item.display_name} CASCADE")
        for item in sorted(world.lake.catalog().visible, key=lambda item: -item.id):  # a composite type before the types of its attributes
            if item.id not in before and isinstance(item, UserType):
                connection.execute(f'DROP {"DOMAIN" if isinstance(item, Domain) else "TYPE"} IF EXISTS "{item.name}" CASCADE')
