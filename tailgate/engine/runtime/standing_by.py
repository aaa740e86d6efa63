"""An engine that stands by: its JVM runs and is warm, the catalog is compiled, and it waits for its turn (`lake.store.stand_by`).

    JVM, Spark, a small engine, the catalog ──► "ready standing by" ──► engine.lock is free, or the lease has expired ──► a new epoch

With `--hand-over` it first asks the running engine to stop, once it is ready itself.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from tailgate.engine.runtime.compiled_catalog import CompiledCatalog
from tailgate.engine.runtime.spark.jvm import Jvm
from tailgate.engine.runtime.state.advance import StateInAdvance
from tailgate.engine.runtime.state.lineages import Lineages
from tailgate.engine.runtime.warm_up import small_engine
from tailgate.lake import control
from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.folder import Lake
from tailgate.lake.host import process_tls
from tailgate.lake.store.stand_by import Lease, StandBy
from tailgate.lake.writer.engines import LEASE_S, announced
from tailgate.lake.writer.log_writer import Writer, open_epoch
from tailgate.lake.writer.stand_by import stand_by

HAND_OVER_S = 30.0  # until the running engine answers; it waits for the boundary between two ticks

log = logging.getLogger("tailgate.engine")


class Awaited(NamedTuple):
    """An engine that stood by and may write: its place, to be closed once it is announced, the writer of the log, and its lease."""

    place: StandBy[Any]
    writer: Writer
    lease: Lease


def awaited(
    lake: Lake, session: SparkSession, jvm: Jvm, catalog: CompiledCatalog, stands_by: Callable[[], None], *, hand_over: bool
) -> Awaited:
    """Waits until this engine may write.

    Meanwhile compiles the newest catalog, and downloads the state of a lake in a bucket. Calls `stands_by` when it is ready.
    """
    place = stand_by(lake)
    folder = jvm.scratch / "small-lake"
    with small_engine(session, folder):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    lake.log.look()
    catalog.update()
    state = StateInAdvance(lake, jvm.scratch, Lineages(session).copy)
    state.update()
    stands_by()
    print("ready standing by", flush=True)
    with catalog.updated(state.update):
        if hand_over:
            _ask(lake)
        faster = 0  # the epoch of an engine that was faster, and has to renew its lease
        while True:
            expired = place.wait()
            if expired is not None:
                log.warning("the running engine has not renewed its lease; this engine replaces it")
            try:
                writer = open_epoch(lake, take_over=expired is not None, after=None if expired is None else max(faster, expired[0]))
                return Awaited(place, writer, Lease(LEASE_S, writer.renew_lease))  # renewed while a download in advance ends
            except ObjectNotInPrerequisiteState as error:
                log.info("still standing by: %s", error.message)
                faster = lake.log.seen.epoch if lake.log.seen is not None else 0


def _ask(lake: Lake) -> None:
    """Asks the running engine to stop at a boundary. Raises 55000 if it refuses."""
    running = announced(lake)
    if running is None:
        return
    connection = process_tls.http_connection(running.address, running.certificate, HAND_OVER_S)
    try:
        connection.request("POST", control.HAND_OVER, b"", control.headers(running.token))
        status = connection.getresponse().status
    except OSError:  # it has ended, or hangs: the lock or the lease shows it
        return
    finally:
        connection.close()
    if status != 200:
        raise ObjectNotInPrerequisiteState(
            "the running engine does not hand over", hint="It may be of an earlier version: stop it, and this engine starts."
        )
