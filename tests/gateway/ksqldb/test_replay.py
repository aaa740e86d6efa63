"""The recorded requests have the recorded responses, over HTTP/1.1 and over HTTP/2 by prior knowledge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gateway.ksqldb.replay import client, exchanges, sent
from tests.gateway.ksqldb.world import Api, KsqldbWorld


@pytest.mark.parametrize("version", ["1.1", "2"])
def test_responses(tmp_path: Path, version: str) -> None:
    world = KsqldbWorld.filled(tmp_path / "lake")
    api = Api(world)
    wrong = []
    try:
        with client(api, version) as http:
            for exchange in exchanges():
                result = sent(http, exchange)
                if result != exchange:
                    wrong.append((exchange, result))
                    print(json.dumps(exchange), json.dumps(result), sep="\n")
    finally:
        api.close()
        world.close()
    assert wrong == []
