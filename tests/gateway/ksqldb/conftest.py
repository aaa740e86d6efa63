"""A lake with streams and tables of ksqlDB, and a server of the HTTP API, for each module of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.ksqldb.world import Api, KsqldbWorld


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KsqldbWorld]:
    world = KsqldbWorld.filled(tmp_path_factory.mktemp("ksqldb") / "lake")
    yield world
    world.close()


@pytest.fixture(scope="module")
def api(world: KsqldbWorld) -> Iterator[Api]:
    api = Api(world)
    yield api
    api.close()
