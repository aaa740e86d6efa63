"""The engine is killed at each step of its loop.

At the end, view and sink equal a recomputation. The load never stops. Each run of the engine ends
at a crash point (lake.host.crash) or by a signal, and the next one continues.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tailgate.embedded.children import Child
from tailgate.examples.shop.demo import SINK_TOPIC, VIEW, statements
from tailgate.examples.shop.load import Load
from tailgate.examples.shop.recompute import Topics, plain
from tailgate.lake.folder import Lake
from testing.engine_process import EngineProcess, rows, until

RATE, FEW = 500.0, 100.0  # page views per second, and those of the short form
HISTORY = 25_000  # page views: more than the first piece of a fill

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

STEPS = (
    "reader.connected:1",  # a reader is open, and not yet in the loop
    "reader.added:1",  # a reader is in the loop, and no tick has read it
    "tick.begin:3",  # the ends of the inputs are fixed, the job has not begun
    "state.committed:3",  # the state is committed, nothing is in the log
    "topics.checked:3",  # the topics are those that were read, nothing is in the log
    "entry.half:3",  # halfway through writing a log entry
    "entry.link:3",  # before its link
    "entry.linked:3",  # after its link, the folder is not synced
    "entry.committed:3",  # the tick is in the log, its inbox entries are not removed
    "tick.end:3",  # the inputs continue behind their ends
    "round.table:2",  # between two tables of a round
)


class Shop:
    """The load, of `rate` page views per second, an engine and a sinks process over one lake."""

    def __init__(self, folder: Path, kafka: str, registry: str, rate: float) -> None:
        self.load = Load(kafka, registry, rate=rate, users=200)
        self.load.prepare()
        self.topics = Topics(kafka, registry)
        self.engine = EngineProcess(folder / "lake")
        self.engine.start()
        for statement in statements(kafka, registry):
            self.engine.execute(statement)
        self.lake = Lake(folder / "lake")
        self.folder = folder
        self.sinks = self.start_sinks()
        self.load.start()

    def start_sinks(self, crash: str = "") -> Child:
        command = [sys.executable, "-m", "tailgate", "sinks", "--data", str(self.folder / "lake")]
        return Child("sinks", command, log=self.folder / "sinks.log", environment={"TAILGATE_CRASH": crash})

    def view(self) -> dict:  # type: ignore[type-arg]
        return {plain(row): n for row, n in rows(self.lake, VIEW).items()}

    def check(self) -> None:
        """Checks that everything that was sent is in the view and in the sink, once."""
        self.load.stop()
        expected, _ = self.topics.view()
        until(lambda: self.view() == dict(expected))
        until(lambda: self.topics.sink(SINK_TOPIC) == expected)

    def end(self) -> None:
        self.load.stop()
        self.sinks.stop()
        self.engine.stop()


@pytest.fixture
def shop(request: pytest.FixtureRequest, tmp_path: Path, own_kafka, registry):  # type: ignore[no-untyped-def]
    shop = Shop(tmp_path, own_kafka.address, registry.url, getattr(request, "param", RATE))
    yield shop
    shop.end()


@pytest.mark.parametrize("shop", [FEW], indirect=True)
def test_a_crash_in_the_middle_of_a_tick_and_a_restart(shop: Shop) -> None:
    """The short form, for every test run. That an engine that was stopped continues at its position is in test_repartition.py."""
    shop.engine.kill(jvm=True)
    shop.engine.start(crash="state.committed:3")
    shop.engine.died()
    shop.engine.start()
    n = shop.lake.log.newest().n  # type: ignore[union-attr]
    until(lambda: shop.lake.log.newest().n > n + 2)  # type: ignore[union-attr]
    shop.check()


@pytest.mark.long
def test_every_step(shop: Shop) -> None:
    shop.engine.kill()
    for step in STEPS:
        shop.engine.start(crash=step)
        shop.engine.died()
    shop.engine.start()
    shop.engine.kill(python=False, jvm=True)  # the driver ends with an error
    shop.engine.start()
    shop.engine.kill(python=True, jvm=False)  # the JVM survives for a second
    shop.engine.start()
    shop.check()


@pytest.mark.long
def test_half_way_through_a_fill(shop: Shop) -> None:
    until(lambda: sum(row[3] for row in shop.view()) > HISTORY, 600)
    shop.engine.kill()
    shop.engine.start(crash="fill.piece:2")
    until(shop.engine._answers)
    with pytest.raises(OSError):  # noqa: PT011  # the connection ends with some error
        shop.engine.execute("CREATE MATERIALIZED VIEW views_by_user AS SELECT user_id, count(*) AS n FROM pageviews GROUP BY user_id")
    shop.engine.died()
    shop.engine.start()
    until(lambda: shop.lake.catalog().relation("views_by_user").ready)
    shop.check()
    counts = {}
    for message in shop.topics.messages("pageviews"):
        user = json.loads(message.value())["user_id"]
        counts[user] = counts.get(user, 0) + 1
    until(lambda: dict(rows(shop.lake, "views_by_user")) == dict.fromkeys(counts.items(), 1))


@pytest.mark.long
@pytest.mark.parametrize("point", ["sink.produced:3", "sink.committed:3"])
def test_the_sinks_between_produce_and_commit(shop: Shop, point: str) -> None:
    shop.sinks.kill()
    shop.sinks = shop.start_sinks(crash=point)
    until(lambda: not shop.sinks.running())
    shop.sinks = shop.start_sinks()
    shop.check()


@pytest.mark.long
def test_a_second_engine_is_refused_and_one_that_is_replaced_stops(shop: Shop) -> None:
    second = EngineProcess(shop.folder / "lake")
    second.start(crash="never")
    second.died()
    assert "--take-over" in second.child.log.read_text()  # type: ignore[union-attr]
    third = EngineProcess(shop.folder / "lake", "--take-over")
    third.start()
    shop.engine.died()
    try:
        shop.check()
    finally:
        third.stop()
