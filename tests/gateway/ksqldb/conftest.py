"""One lake with streams and tables of ksqlDB, and a server of the HTTP API, for all modules of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.ksqldb.world import Api, KsqldbWorld


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KsqldbWorld]:
    world = KsqldbWorld.filled(tmp_path_factory.mktemp("ksqldb") / "lake")
    yield world
    world.close()


@pytest.fixture(scope="package")
def api(world: KsqldbWorld) -> Iterator[Api]:
    api = Api(world)
    yield api
    api.close()
