"""The process of `tailgate engine`: locks the lake, runs the ticks, stops at a boundary.

The JVM is already starting when this module is imported (`jvm`).
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tailgate.engine.ddl.ksqldb import Endpoints
from tailgate.engine.runtime import standing_by
from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.compiled_catalog import CompiledCatalog
from tailgate.engine.runtime.control import metrics
from tailgate.engine.runtime.control.advisory_locks import AdvisoryLocks
from tailgate.engine.runtime.control.blocks.commits import Commits
from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.engine.runtime.control.entry_stream import EntryStream
from tailgate.engine.runtime.control.freshness import Freshness
from tailgate.engine.runtime.control.recency import Recency
from tailgate.engine.runtime.control.sequences import Sequences
from tailgate.engine.runtime.control.statements import Statements
from tailgate.engine.runtime.control.status import Status
from tailgate.engine.runtime.maintenance.follow import Follow
from tailgate.engine.runtime.maintenance.isolation import Isolation
from tailgate.engine.runtime.maintenance.letter_expiry import Expiring
from tailgate.engine.runtime.maintenance.processing_log import ProcessingLog
from tailgate.engine.runtime.maintenance.state_uploads import StateUploads
from tailgate.engine.runtime.spark import session as spark
from tailgate.engine.runtime.spark.circuits import Circuits
from tailgate.engine.runtime.spark.cluster import Cluster
from tailgate.engine.runtime.spark.jvm import LOGGING, Jvm
from tailgate.engine.runtime.state import restoration
from tailgate.engine.runtime.state.files import in_bucket
from tailgate.engine.runtime.state.lineages import Lineages
from tailgate.engine.runtime.ticks import repeated_writes
from tailgate.engine.runtime.ticks.ages import TickAge
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.engine.runtime.ticks.tick_figures import intervals
from tailgate.engine.runtime.ticks.tick_result import Ticked
from tailgate.engine.runtime.ticks.writes import Writes
from tailgate.lake.catalog.secrets import Vault
from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.folder import Lake
from tailgate.lake.readers import holds, reading
from tailgate.lake.store.stand_by import Lease, StandBy
from tailgate.lake.tables import large
from tailgate.lake.writer.engines import LEASE_S
from tailgate.lake.writer.log_writer import Writer, open_epoch
from tailgate.operations import logs
from tailgate.operations.definitions import ENGINE
from tailgate.operations.endpoint import Address, opened
from tailgate.operations.otlp import active as otlp
from tailgate.operations.settings.process import ProcessSettings

log = logging.getLogger("tailgate.engine")

SWITCH_S = 0.0005  # a tick waits at most this long for threads that compute, such as those of rounds


class Begin(Enum):
    """The behavior of an engine while another one runs."""

    ALONE = "alone"  # it is refused
    STAND_BY = "stand-by"  # it waits until the other one ends or hangs
    HAND_OVER = "hand-over"  # the same, and it asks the other one to stop
    TAKE_OVER = "take-over"  # it replaces the other one

    @staticmethod
    def of(take_over: bool, hand_over: bool, stand_by: bool) -> Begin:
        """Returns the first of the options that is set."""
        options = {Begin.TAKE_OVER: take_over, Begin.HAND_OVER: hand_over, Begin.STAND_BY: stand_by}
        return next((begin for begin, is_set in options.items() if is_set), Begin.ALONE)


@dataclass(frozen=True, slots=True)
class HeldHistory:
    """The limits of the log: how long past states are readable, and how much of it a sink or subscription may hold."""

    history_s: int
    log_mb: int

    def apply(self, lake: Lake) -> None:
        reading.retain_history(self.history_s * 1000)
        holds.limit_bytes(lake, self.log_mb << 20)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tailgate engine`."""

    data: Path | str
    work_dir: Path | None = None  # this machine's folder, if the lake is in a bucket
    parallelism: int = 1
    begin: Begin = Begin.ALONE
    vault: Vault = field(default_factory=Vault)
    endpoints: Endpoints = field(default_factory=Endpoints)
    metrics: Address | None = None  # where metrics and health checks are served
    settings: ProcessSettings | None = None  # of this process, published for gateways
    held: HeldHistory = field(default_factory=lambda: HeldHistory(3600, 20 << 10))
    index_mb: int = 256  # memory of the indexes of large tables
    cluster: Cluster | None = None  # whose executors run the ticks
    control_listen: str | None = None  # where other machines reach the control interface
    processing_log: bool = False  # whether failures are written to the stream KSQL_PROCESSING_LOG

    def apply_limits(self, lake: Lake) -> None:
        """Sets the limits of the log and of the indexes of large tables."""
        self.held.apply(lake)
        large.limit_index(self.index_mb << 20)


def run(options: Options, jvm: Jvm) -> int:
    """Runs the engine until SIGTERM or SIGINT. Returns exit code 0.

    Raises 55000 if the lake's state has another number of partitions than `options.parallelism`.
    """
    sys.setswitchinterval(SWITCH_S)
    options.vault.check()
    # this logger writes a page of JSON for each error that is reported elsewhere
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    endpoint = opened(options.metrics, ENGINE)
    lake = Lake.open(options.data, options.work_dir, create=True)
    epoch = _begun(options, lake, jvm, (lambda: None) if endpoint is None else endpoint.health.stands_by)
    session, writer = epoch.session, epoch.writer
    restoration.complete(lake, writer.newest, jvm.scratch, Lineages(session).copy)
    options.apply_limits(lake)
    engine = Engine(lake, session, writer, options.parallelism, options.vault, epoch.circuits)
    installation = Installation(engine)
    isolation = Isolation(installation)
    statements = Statements(engine, installation, options.endpoints)
    find = partial(repeated_writes.find, lake, engine.inbox)
    writes = Writes(engine.inbox, lambda: engine.catalog, engine.enter, engine.ages.acknowledge, find, engine.confirm)
    change_table = partial(statements.change_table, writes.accepted)
    follow = Follow(engine, isolation)
    status, recency, freshness = Status(installation, lambda: follow.sizes), Recency(engine), Freshness(engine)

    def stop(*_: object) -> None:
        threading.Thread(target=engine.stop, name="stop").start()

    entries = EntryStream(lake.log)
    run, plan = statements.execute, statements.planning.plan_in_block
    commits = Commits(installation, writes)
    answers = Answers(
        run, entries.serve, status, writes.write, recency, change_table, Sequences(engine, installation), freshness, status.health,
        stop, plan, commits, statements.push_queries.begin, statements.follow_topic, AdvisoryLocks().request,
    )  # fmt: skip
    control = Control(answers, jvm.ended, options.control_listen)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    installation.recover()
    follow.start()
    _start_threads(options, engine, installation, statements)
    control.start()
    writer.announce(address=control.address, token=control.token, jvm=spark.jvm_pid(session), certificate=control.certificate)
    if epoch.place is not None:
        epoch.place.close()
    if endpoint is not None:
        metrics.connect(endpoint.metrics, installation, follow, spark.jvm_pid(session))
        endpoint.health.started(partial(metrics.unready, engine))
    withdraw = _settings(options, lake)
    print(f"ready control={'http' if control.certificate is None else 'https'}://{control.address}", flush=True)
    try:
        engine.run()
        follow.last_round()
    finally:
        epoch.lease.end()
        control.stop()
        writer.close()
        withdraw()
    return 0


def _start_threads(options: Options, engine: Engine, installation: Installation, statements: Statements) -> None:
    """Starts the expiry of dead letters, uploads of the state, the traces of ticks, and ksqlDB's processing log."""
    Expiring(engine, installation.letters).start()
    if in_bucket(engine.lake):
        StateUploads(engine).start()
    _trace_ticks(engine)
    if options.processing_log:
        processing_log = ProcessingLog(engine, options.endpoints.brokers(), statements.execute_own)
        engine.runner.on_failures = processing_log.note
        processing_log.start()


def _trace_ticks(engine: Engine) -> None:
    """Sends a trace of each tick to the collector of --otlp."""
    exporter = otlp.exporter()
    if exporter is None:
        return
    from tailgate.operations.otlp.traces import TickTraces

    traces = TickTraces(exporter, engine.lake.id)

    def trace(tick: TickAge, result: Ticked) -> None:
        steps = intervals(tick, result)
        rows = sum(rows for rows, _ in result.sizes.values())
        traces.tick(tick.n, steps[0][1], steps[-1][2], steps, {"entry": tick.n, "changed_rows": rows})

    engine.runner.trace = trace


def _change_log(session: SparkSession, form: logs.Form) -> None:
    """Changes the form of the log of this process and of its JVM."""
    logs.change(form, "engine")
    jvm: Any = session._jvm
    jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure(jvm.java.net.URI(LOGGING[form].as_uri()))


def _settings(options: Options, lake: Lake) -> Callable[[], None]:
    """Applies the limits of the log when they change, and publishes the settings. Returns the function that ends this."""
    settings = options.settings
    if settings is None:
        return lambda: None
    settings.on_change("history", lambda history_s: reading.retain_history(history_s * 1000))
    settings.on_change("held-log", lambda log_mb: holds.limit_bytes(lake, log_mb << 20))
    settings.publish(lake.store)
    return settings.withdraw


@dataclass(frozen=True, slots=True)
class Begun:
    """An engine whose epoch has begun.

    For one that stood by: its place, to be closed once it is announced, and the circuits of its compiled catalog.
    """

    session: SparkSession
    writer: Writer
    lease: Lease
    place: StandBy[Any] | None = None
    circuits: Circuits | None = None


def _begun(options: Options, lake: Lake, jvm: Jvm, stands_by: Callable[[], None]) -> Begun:
    """Starts Spark, and begins an epoch, with a lease. Calls `stands_by` when this engine waits for its turn."""
    if options.begin in (Begin.STAND_BY, Begin.HAND_OVER):
        session = _spark(options, jvm)
        catalog = CompiledCatalog(lake, session, options.parallelism, options.vault)
        hand_over = options.begin is Begin.HAND_OVER
        place, writer, lease = standing_by.awaited(lake, session, jvm, catalog, stands_by, hand_over=hand_over)
        _check_partitions(writer, options.parallelism)
        return Begun(session, writer, lease, place, catalog.circuits)
    writer = open_epoch(lake, take_over=options.begin is Begin.TAKE_OVER)
    lease = Lease(LEASE_S, writer.renew_lease)
    _check_partitions(writer, options.parallelism)
    return Begun(_spark(options, jvm), writer, lease)


def _spark(options: Options, jvm: Jvm) -> SparkSession:
    """Starts Spark. From now on, the form of the log of both processes can change."""
    session = spark.start(jvm.scratch, options.parallelism, jvm, options.cluster)
    if options.settings is not None:
        options.settings.on_change("log", lambda form: _change_log(session, form))
    return session


def _check_partitions(writer: Writer, parallelism: int) -> None:
    """Raises 55000 if the state has another number of partitions; a new lake has no state yet."""
    existing = writer.newest.extra.get("parallelism", parallelism)
    if existing != parallelism and writer.newest.state:
        raise ObjectNotInPrerequisiteState(
            f"the state of this lake lies in {existing} partitions, and --parallelism is {parallelism}",
            hint=f"Start the engine with --parallelism {existing}, or move the state: tailgate repartition --parallelism {parallelism}.",
        )
