"""The engine is killed at each step of a request with an Idempotency-Key; the repeated request, at another gateway, is executed once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from tailgate.gateway.http.server import HttpOptions
from tailgate.lake.folder import Lake
from tests.authorization.world import World
from tests.gateway.http.conftest import Web
from tests.gateway.http.test_writes import send
from tests.tables.world import Engine, Served, engine_process

STEPS = ("write.begin:3", "inbox.entry:3", "inbox.link:3", "inbox.linked:3", "entry.half:4", "entry.link:4", "entry.linked:4")
REQUESTS_MAX = 20  # until the engine reaches the step


@dataclass
class Gateways:
    """Two gateways over a lake, of which the second answers repeated requests."""

    lake: Lake
    served: Served


@pytest.mark.parametrize("steps", [("inbox.linked:3", "entry.linked:4"), pytest.param(STEPS, marks=pytest.mark.long)])
def test_killed_between_write_and_response(tmp_path: Path, steps: tuple[str, ...]) -> None:
    lake = Lake.create(tmp_path / "lake")
    running = Engine(Lake.open(lake.path))
    served = Served(lake)
    webs = [Web(cast(World, Gateways(lake, served)), HttpOptions("127.0.0.1", 0)) for _ in range(2)]
    connection = psycopg.connect(served.dsn, autocommit=True)
    connection.execute("CREATE TABLE orders (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text)")
    connection.execute("CREATE ENDPOINT orders POST '/orders' AS INSERT INTO orders (item) VALUES (:item) RETURNING id, item")
    answers: dict[str, Any] = {}
    try:
        for step in steps:
            running.close()
            child = engine_process(lake.path, step)
            child.wait_ready(child.announced, timedelta(seconds=60))
            for number in range(REQUESTS_MAX):
                item = f"{step} {number}"
                status, _, answer = send(webs[0], "POST", "/orders", {"item": item}, Idempotency_Key=item)
                answers[item] = answer
                if status != 201:
                    assert status == 503  # the engine ended, or the tick of a durable write does not come
                    break
            assert child.wait(timedelta(seconds=60)) is not None, step
            running = Engine(Lake.open(lake.path))
            status, _, answers[item] = send(webs[1], "POST", "/orders", {"item": item}, Idempotency_Key=item)
            assert status == 201, answers[item]
            for web in webs:
                assert send(web, "POST", "/orders", {"item": item}, Idempotency_Key=item)[2] == answers[item]
        rows = connection.execute("SELECT item, id FROM orders ORDER BY id").fetchall()
        assert sorted(rows) == sorted((item, answer["id"]) for item, answer in answers.items())
    finally:
        connection.close()
        for web in webs:
            web.close()
        served.close()
        running.close()
