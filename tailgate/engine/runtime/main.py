"""The process of `tailgate engine`: locks the lake, runs the ticks, stops at a boundary.

The JVM is already starting when this module is imported (`jvm`).
"""

from __future__ import annotations

import logging
import signal
import threading
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tailgate.engine.ddl.ksqldb import Endpoints
from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.control import metrics
from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.engine.runtime.control.freshness import Freshness
from tailgate.engine.runtime.control.recency import Recency
from tailgate.engine.runtime.control.sequences import Sequences
from tailgate.engine.runtime.control.statements import Statements
from tailgate.engine.runtime.control.status import Status
from tailgate.engine.runtime.maintenance.follow import Follow
from tailgate.engine.runtime.maintenance.isolation import Isolation
from tailgate.engine.runtime.maintenance.letter_expiry import Expiring
from tailgate.engine.runtime.spark import session as spark
from tailgate.engine.runtime.spark.jvm import Jvm
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.engine.runtime.ticks.writes import Writes
from tailgate.lake.catalog.secrets import Vault
from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.folder import Lake
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.operations.definitions import ENGINE
from tailgate.operations.endpoint import Address, opened

log = logging.getLogger("tailgate.engine")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tailgate engine`."""

    data: Path
    parallelism: int = 1
    take_over: bool = False
    vault: Vault = field(default_factory=Vault)
    endpoints: Endpoints = field(default_factory=Endpoints)
    metrics: Address | None = None  # where metrics and health checks are served


def run(options: Options, jvm: Jvm) -> int:
    """Runs the engine until SIGTERM or SIGINT. Returns exit code 0.

    Raises 55000 if the lake's state has another number of partitions than `options.parallelism`.
    """
    options.vault.check()
    # this logger writes a page of JSON for each error that is reported elsewhere
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    endpoint = opened(options.metrics, ENGINE)
    lake = Lake.open(options.data, create=True)
    writer = open_epoch(lake, take_over=options.take_over)
    parallelism = writer.newest.extra.get("parallelism", options.parallelism)
    if parallelism != options.parallelism and writer.newest.state:
        raise ObjectNotInPrerequisiteState(
            f"the state of this lake lies in {parallelism} partitions, and --parallelism is {options.parallelism}",
            hint=f"Start the engine with --parallelism {parallelism}.",
        )
    session = spark.start(jvm.scratch, options.parallelism, jvm)
    engine = Engine(lake, session, writer, options.parallelism, options.vault)
    installation = Installation(engine)
    isolation = Isolation(installation)
    statements = Statements(engine, installation, options.endpoints)
    writes = Writes(engine.inbox, lambda: engine.catalog, engine.enter, engine.ages.acknowledge)
    change_table = partial(statements.change_table, writes.accepted)
    status, recency, freshness = Status(installation), Recency(engine), Freshness(engine)
    sequences = Sequences(engine, installation)
    answers = Answers(
        statements.execute, statements.newest, status, writes.write, recency, change_table, sequences, freshness, status.health
    )
    control = Control(answers, jvm.ended)

    def on_signal(number: int, frame: object) -> None:
        threading.Thread(target=engine.stop, name="stop").start()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    installation.recover()
    follow = Follow(engine, isolation)
    follow.start()
    Expiring(engine, installation.letters).start()
    control.start()
    writer.announce(address=control.address, token=control.token, jvm=spark.jvm_pid(session))
    if endpoint is not None:
        metrics.connect(endpoint.metrics, installation, follow, spark.jvm_pid(session))
        endpoint.health.started(partial(metrics.unready, engine))
    print(f"ready control=http://{control.address}", flush=True)
    try:
        engine.run()
        follow.round()
    finally:
        control.stop()
        writer.close()
    return 0
