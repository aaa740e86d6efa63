"""Moves the state of a lake to another number of partitions, without an engine that runs.

    state of n partitions ──► other folder, m partitions ──► counts of entries ──► log entry that names it ──► old folder removed

A run that is killed before the log entry has changed nothing, and the next run removes its files. `Repartition` in Java moves the entries.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError

from tailgate.engine.plan.rules.change import ArrivalJoin, stateful
from tailgate.engine.plan.views import catalog_graph
from tailgate.engine.plan.views.replacements import planning_findings
from tailgate.engine.plan.views.streams import Streams
from tailgate.engine.runtime.backfill.restoring import empty_folder, remove_lost
from tailgate.engine.runtime.maintenance.state_uploads import StateUploads
from tailgate.engine.runtime.spark import session as spark
from tailgate.engine.runtime.spark.circuits import sql_errors
from tailgate.engine.runtime.spark.jvm import Jvm
from tailgate.engine.runtime.state import restoration
from tailgate.engine.runtime.state.files import in_bucket
from tailgate.engine.runtime.state.lineages import Lineages
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.engine.runtime.ticks.failures import state_lost
from tailgate.lake.catalog import Catalog, MaterializedView
from tailgate.lake.catalog.secrets import Vault
from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
from tailgate.lake.log.state_files import folder_of
from tailgate.lake.log.uploaded_state import UPLOADED
from tailgate.lake.store.stand_by import Lease
from tailgate.lake.writer.engines import LEASE_S
from tailgate.lake.writer.log_writer import Writer, open_epoch

KIND = "state"  # of the log entry


@dataclass(frozen=True, slots=True)
class Repartitioned:
    """The partitions of the state before and after, and the number of entries of each operator. None without state."""

    before: int
    after: int
    entries: dict[int, int] | None


def run(lake: Lake, parallelism: int, vault: Vault, jvm: Jvm) -> Repartitioned:
    """Moves the state to `parallelism` partitions.

    Raises 55000 if an engine runs, or views must be filled first.
    """
    vault.check()
    writer = open_epoch(lake)
    lease = Lease(LEASE_S, writer.renew_lease)
    try:
        before = writer.newest.extra.get("parallelism", parallelism)
        if before == parallelism or not writer.newest.state:
            _remove_old(lake, writer)
            return Repartitioned(parallelism, parallelism, None)
        if findings := planning_findings(lake.catalog()):
            raise ObjectNotInPrerequisiteState(
                f"{findings[0].view} must be filled again: {findings[0].reason}", hint=f"Start an engine with --parallelism {before} first."
            )
        _check_filled(lake.catalog(), before)
        return Repartitioned(before, parallelism, _moved(lake, writer, before, parallelism, vault, jvm))
    finally:
        lease.end()
        writer.close()


def _check_filled(catalog: Catalog, before: int) -> None:
    """Raises 55000 if a view is being filled whose rows wait for the end of that: their state cannot be moved."""
    streams = Streams(catalog)
    for item in catalog.items.values():
        if isinstance(item, MaterializedView) and not item.ready and any(isinstance(o, ArrivalJoin) for o in stateful(streams(item))):
            raise ObjectNotInPrerequisiteState(
                f'{item.kind} "{item.name}" is being filled',
                hint=f"Start an engine with --parallelism {before}, and wait until it is filled.",
            )


def _moved(lake: Lake, writer: Writer, before: int, after: int, vault: Vault, jvm: Jvm) -> dict[int, int]:
    """Moves the state. Returns the number of entries by operator."""
    session = spark.start(jvm.scratch, 1, jvm)
    restoration.complete(lake, writer.newest, jvm.scratch, Lineages(session).copy)
    engine = Engine(lake, session, writer, after, vault)
    catalog, newest = engine.catalog, engine.newest
    circuit = engine.circuits.build(catalog_graph.compile_catalog(catalog, Streams(catalog)), (), engine.opened)
    folder, name = empty_folder(engine)
    source, target = lake.local.location(folder_of(newest)), lake.local.location(name)
    try:
        with sql_errors():
            result = json.loads(circuit.repartition(session._jsparkSession, source, newest.state, before, target, after, newest.time))
    except Py4JJavaError as error:
        if not state_lost(error):
            raise
        raise ObjectNotInPrerequisiteState("the state is lost", hint="Start an engine, which makes it again.") from error
    crash.point("repartition.moved")
    extra = {**newest.extra, "parallelism": after, "state": folder, "forgotten": []}
    with engine.boundary:
        engine.append(kind=KIND, state=result["state"], extra=extra)
    crash.point("repartition.entered")
    if in_bucket(lake):
        StateUploads(engine).upload()
        with engine.boundary:
            engine.append(kind=KIND, extra={**extra, UPLOADED: engine.uploaded})
        crash.point("repartition.uploaded")
    _remove_old(lake, writer)
    return {int(operator): count for operator, count in result["entries"].items()}


def _remove_old(lake: Lake, writer: Writer) -> None:
    """Removes the files of state that the newest entry does not name, also those of a run that was killed."""
    if folder := writer.newest.extra.get("state"):
        remove_lost(lake, folder)
