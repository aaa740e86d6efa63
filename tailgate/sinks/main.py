"""The process `tailgate sinks`: a worker for each sink of the catalog, started and ended as the catalog changes.

    log ──► catalog entry ──► sink created ──► record where it begins ──► worker
                         └──► sink dropped ──► the worker writes the last changes, removes its copy, ends

SIGTERM and SIGINT end the process between two transactions, with exit code 0.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from tailgate.lake.catalog import Catalog, Secret, Sink, View
from tailgate.lake.catalog.formats import ConnectionSettings
from tailgate.lake.catalog.secrets import Vault, secrets_of, settings
from tailgate.lake.errors import Gone, TailgateError
from tailgate.lake.folder import Lake
from tailgate.lake.readers import sinks_process
from tailgate.lake.readers.sinks_process import SinksProcess
from tailgate.lake.store.stand_by import Lease, StandBy
from tailgate.lake.types import EnumType
from tailgate.lake.wake import Wake
from tailgate.operations.definitions import SINKS
from tailgate.operations.endpoint import Address, opened
from tailgate.operations.settings.process import ProcessSettings
from tailgate.sinks import metrics, status
from tailgate.sinks.failures import Replaced
from tailgate.sinks.follower import Follower
from tailgate.sinks.samples.sampler import Sampler
from tailgate.sinks.status import Copy, Position
from tailgate.sinks.worker import Begin, Worker

log = logging.getLogger("tailgate.sinks")

END_TIMEOUT = timedelta(seconds=20)  # for a transaction in progress: ms, or the session's timeouts if the broker has just failed
FILES_WAIT = timedelta(seconds=1)  # delay after a failure of the file system
SWITCH_S = 0.0005  # longest wait of a sink whose broker has answered for one that encodes rows; Python's default is 5 ms


class Sinks:
    """All sinks of a lake. `follow()` runs them until `stop()` is called from a signal handler or another thread.

    A separate thread waits for the log, so that a stop need not wait for it.
    """

    def __init__(self, lake: Lake, vault: Vault | None = None) -> None:
        self._lake = lake
        self._vault = vault or Vault()
        self._instance = uuid.uuid4().hex
        self._stopping = threading.Event()
        self._starting = threading.Lock()  # prevents new workers once the stop has begun
        self._failure: Exception | None = None
        self.started = False  # every sink has a worker
        self.at_end = time.monotonic()  # when the end of the log was last seen
        self._workers: dict[int, Worker] = {}
        self._used: dict[int, tuple[Secret | EnumType, ...]] = {}  # what each worker uses of the catalog, besides its items
        newest = lake.log.newest()
        self._n = 0 if newest is None else newest.n
        self._catalog: Catalog = lake.catalog_at(self._n) if newest is not None else Catalog()
        self._catalog_n = self._n  # the entry that the catalog was read at, or that changed it last
        self._follower = Follower(self._n)
        self._wake = Wake(lake)

    @property
    def workers(self) -> list[Worker]:
        """Returns the workers of all sinks."""
        return list(self._workers.values())

    @property
    def catalog(self) -> Catalog:
        """Returns the catalog at the newest entry that the workers may process."""
        return self._catalog

    @property
    def n(self) -> int:
        """Returns the number of this entry."""
        return self._n

    def stop(self) -> None:
        self._stopping.set()
        self._wake.interrupt()

    def replaced(self) -> None:
        """Ends the sinks, because another process runs them. `follow` raises 55000."""
        self._failure = Replaced("another process runs the sinks of this lake")
        self.stop()

    def follow(self, ready: Callable[[], None] = lambda: None) -> None:
        """Runs the sinks until `stop()`. Raises the exception if following the log fails. Calls `ready` when every sink has a worker."""
        threading.Thread(target=self._follow_log, args=(ready,), name="log", daemon=True).start()
        self._stopping.wait()
        with self._starting:
            self._end()
        if self._failure is not None:
            raise self._failure

    def _follow_log(self, ready: Callable[[], None]) -> None:
        try:
            self._retried(self._start_all)
            ready()
            self.started = True
            self._wake.start(self._n)
            while not self._stopping.is_set():
                self._retried(self._read_log)
        except Exception as failure:  # noqa: BLE001  # raised again by follow()
            self._failure = failure
            self._stopping.set()
        finally:
            self._wake.close()

    def _retried(self, action: Callable[[], None]) -> None:
        """Runs an idempotent action, and repeats it while the file system fails."""
        while not self._stopping.is_set():
            try:
                action()
                return
            except OSError as error:
                log.warning("the log or a file of a sink cannot be read or written: %s; trying again", error)
                self._stopping.wait(FILES_WAIT.total_seconds())

    def _start_all(self) -> None:
        for sink in status.sinks(self._lake):
            if sink not in self._catalog.items:  # dropped while this process was not running
                Copy(self._lake, sink).remove()
        for item in _ready(self._catalog).values():
            if item.id not in self._workers:
                self._start(item, None)

    def _read_log(self) -> None:
        self._wake.wait()
        entries = self._lake.log.after(self._n)
        self.at_end = time.monotonic()
        for entry in entries:
            header = entry.header
            if header.catalog is not None:
                if header.n != self._catalog_n:
                    self._catalog, self._catalog_n = self._catalog.apply(header.catalog), header.n
                self._follow_catalog(Begin(header.n, header.time))
            self._n = header.n
        self._wake.seen(self._n)
        self._follower.arrived(self._n)

    def _follow_catalog(self, at: Begin) -> None:
        """Starts and ends workers until they match the catalog. It is idempotent, so it can be repeated after a failure."""
        ready = _ready(self._catalog)
        for id, worker in list(self._workers.items()):
            if id not in ready:
                worker.end(dropped=True)
                if not worker.is_alive():  # it has stopped with an error
                    Copy(self._lake, id).remove()
                del self._workers[id]
            elif ready[id] != worker.item or _used_by(worker.item, self._catalog) != self._used[id]:
                worker.end()
                worker.join()
                del self._workers[id]
                self._start(ready[id], None)
        for id, item in ready.items():
            if id not in self._workers:
                self._start(item, at)

    def _start(self, item: Sink, begin: Begin | None) -> None:
        """Starts a worker. `begin`: where the sink begins, if its CREATE has just been read from the log."""
        copy = Copy(self._lake, item.id)
        noted = copy.begin()
        if noted is not None:
            begin = Begin(*noted)
        else:
            start = begin or self._began(item)
            begin = start or self._now()
            if start is None and not item.snapshot:
                reason = f"{Gone.sqlstate}: the log since the sink's creation is gone"
                copy.write(Position(begin.n, begin.time, claimed=False, filled=True, sent=0), "stopped", reason)
                return
            copy.note(begin.n, begin.time, snapshot=item.snapshot)
        catalog = self._catalog
        relation = catalog[item.depends[0]]

        def opened(connection_settings: ConnectionSettings) -> dict[str, str]:
            return self._vault.opened(settings(connection_settings, catalog))

        with self._starting:
            if not self._stopping.is_set():
                self._used[item.id] = _used_by(item, catalog)
                kind = Sampler if isinstance(relation, View) else Worker
                worker = self._workers[item.id] = kind(self._lake, item, relation, begin, self._follower, self._instance, opened)
                worker.start()

    def _began(self, item: Sink) -> Begin | None:
        """Returns the entry at which the sink and its relation became ready, or None if it is no longer in the log.

        In the latter case a sink with a snapshot begins now: it has written nothing yet, so its snapshot may
        be of any time.
        """
        ids = {item.id, item.depends[0]}
        for entry in self._lake.log.after(self._lake.log.first() - 1, self._n):
            header = entry.header
            changed = header.catalog is not None and any(put.id in ids for put in header.catalog.put)
            if changed and item.id in _ready(self._lake.catalog_at(header.n)):
                return Begin(header.n, header.time)
        return None

    def _now(self) -> Begin:
        header = self._lake.log.header(self._n)
        return Begin(header.n, header.time)

    def _end(self) -> None:
        workers = list(self._workers.values())  # a copy: the thread that follows the log may still change it
        for worker in workers:
            worker.end()
        deadline = time.monotonic() + END_TIMEOUT.total_seconds()
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))


def _used_by(item: Sink, catalog: Catalog) -> tuple[Secret | EnumType, ...]:
    """Returns the secrets of a sink, and the enum types of its relation. If one changes, the sink's worker starts again."""
    types = (type.enum for column in catalog[item.depends[0]].columns for type in column.type.named)
    return (*secrets_of(item, catalog), *(enum for enum in types if enum is not None))


def _ready(catalog: Catalog) -> dict[int, Sink]:
    """Returns the sinks that can run: they and their relations are ready."""
    items = catalog.items
    return {i.id: i for i in items.values() if isinstance(i, Sink) and i.ready and items[i.depends[0]].ready}


def run(
    lake_path: str | Path,
    vault: Vault | None = None,
    metrics_address: Address | None = None,
    *,
    stand_by: bool = False,
    settings: ProcessSettings | None = None,
) -> int:
    """Runs the sinks of a lake until SIGTERM or SIGINT, and returns the exit code.

    `stand_by`: waits first, until the process that runs them ends or hangs. `settings`: of this process, published for gateways.
    """
    sys.setswitchinterval(SWITCH_S)
    if vault is not None:
        vault.check()
    endpoint = opened(metrics_address, SINKS)
    sinks: list[Sinks] = []

    def stop(*_: object) -> None:
        if not sinks:
            sys.exit(0)
        sinks[0].stop()

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
    Lake.wait_until_created(lake_path, log, time.sleep)
    try:
        lake = Lake(lake_path)
        place = _awaited(lake, (lambda: None) if endpoint is None else endpoint.health.stands_by) if stand_by else None
        process = SinksProcess(lake)
        if place is not None:
            place.close()
        sinks.append(Sinks(lake, vault))

        def renew() -> None:
            if not process.renew():
                sinks[0].replaced()

        lease = Lease(sinks_process.lease_s(lake), renew)
        if endpoint is not None:
            metrics.connect(endpoint.metrics, sinks[0])
            endpoint.health.started(partial(metrics.unready, sinks[0]))
        if settings is not None:
            settings.publish(lake.store)
        sinks[0].follow(lambda: print(f"ready sinks={lake_path}", flush=True))
        lease.end()
        process.end()
        if settings is not None:
            settings.withdraw()
    except TailgateError as error:
        print(f"tailgate sinks: {error.sqlstate}: {error.message}", file=sys.stderr, flush=True)
        return 1
    return 0


def _awaited(lake: Lake, stands_by: Callable[[], None]) -> StandBy[Any]:
    """Waits until this process may run the sinks. Returns its place, to be closed once it is announced. Calls `stands_by` first."""
    place = sinks_process.stand_by(lake)
    stands_by()
    print("ready standing by", flush=True)
    if place.wait() is not None:
        log.warning("the running process has not renewed its lease; this process replaces it")
    return place
