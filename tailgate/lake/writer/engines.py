"""Detection of a running engine: by engine.lock where the store has locks, elsewhere by its lease, engine.lease (W4).

A running engine renews its lease every second, from the beginning of its epoch. engine.json (mode
0600) describes the engine: its epoch, address, control token, certificate, process and JVM. A JVM
outlives its Python driver by about a second, so the next engine on the machine waits for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Hashable
from dataclasses import asdict, dataclass

from tailgate.lake import control
from tailgate.lake.errors import ObjectNotInPrerequisiteState, TailgateError
from tailgate.lake.folder import Lake
from tailgate.lake.host import process_tls
from tailgate.lake.host.processes import Machine, Process
from tailgate.lake.store import Lock, NoLocks, announcements, documents
from tailgate.lake.store.documents import Document
from tailgate.lake.store.stand_by import EXPIRED_LOOKS, LOOKS

LOCK, LEASE, ANNOUNCEMENT = "engine.lock", "engine.lease", "engine.json"  # in the store
LEASE_S = 1.0  # between two renewals of the lease
GONE_TIMEOUT_S = 30.0  # an earlier JVM normally ends after about 1 s
GONE_POLL_S = 0.05


def locked(lake: Lake, take_over: bool) -> Lock:
    """Returns the lock on engine.lock. Raises 55000 if another engine runs, unless this one takes over."""
    lock = lake.store.lock(LOCK)
    try:
        free = lock.take()
    except NoLocks:
        if not take_over:
            refuse_if_alive(lake)
        return lock
    if not free:
        if not take_over:
            raise _refused(lake)
        lock.replace()
    return lock


def refuse_if_alive(lake: Lake) -> None:
    """Raises 55000 if an engine renews its lease (W4 without locks). Does not use wall clocks."""
    before = lease(lake)
    for _ in range(EXPIRED_LOOKS):
        if before is None:
            return
        time.sleep(LEASE_S / LOOKS)
        after = lease(lake)
        if after is not None and after != before:
            raise _refused(lake)
        before = after


def lease(lake: Lake) -> tuple[int, Hashable] | None:
    """Returns the epoch of the engine with a lease, and a value that differs after each renewal; None if no engine has one."""
    document = documents.renewed(lake.store, LEASE)
    return None if document is None else (document[0]["epoch"], document[1])


def _refused(lake: Lake) -> TailgateError:
    running = announced(lake)
    return ObjectNotInPrerequisiteState(
        f"another engine runs on the lake in {lake.store.location('')}",
        detail=f"It is process {running.process.pid} on {running.machine.host}, in epoch {running.epoch}." if running else None,
        hint="Stop it first, or replace it with --take-over.",
    )


@dataclass(frozen=True, slots=True)
class Announcement:
    """The content of engine.json. `certificate`: of the control interface, if other machines reach it (`lake.host.process_tls`)."""

    epoch: int
    address: str
    token: str
    machine: Machine
    process: Process
    jvm: Process | None
    certificate: str | None = None

    @property
    def has_ended(self) -> bool:
        """Returns whether the engine was on this machine and does not exist any more."""
        return self.machine.is_here and not self.process.lives()

    @staticmethod
    def mine(epoch: int, address: str, token: str, jvm: int | None, certificate: str | None = None) -> Announcement:
        """Returns the announcement of this process. `jvm`: the id of its JVM's process."""
        process, of_jvm = Process.of(os.getpid()), None if jvm is None else Process.of(jvm)
        return Announcement(epoch, address, token, Machine.here(), process, of_jvm, certificate)

    def write(self, lake: Lake) -> None:
        """Writes engine.json, unless a later epoch has written it."""
        content = {**asdict(self), **announcements.fields_of(self.machine)}
        documents.update(lake.store, ANNOUNCEMENT, lambda before: None if before and before["epoch"] > self.epoch else content)


def announced(lake: Lake) -> Announcement | None:
    """Returns the engine that is running or crashed; None if the last one ended normally."""
    data = documents.read(lake.store, ANNOUNCEMENT)
    return None if data is None else _announcement(data)


def _announcement(data: Document) -> Announcement:
    jvm = None if data["jvm"] is None else Process(**data["jvm"])
    process = Process(**data["process"])
    machine = announcements.machine_of(data)
    return Announcement(data["epoch"], data["address"], data["token"], machine, process, jvm, data.get("certificate"))


def renew(lake: Lake, epoch: int) -> bool:
    """Renews the lease of the engine of an epoch. Returns False if it had none; then it has one, unless a later engine has."""
    if documents.renew(lake.store, LEASE, lambda document: document["epoch"] == epoch):
        return True
    documents.update(lake.store, LEASE, lambda before: None if before and before["epoch"] > epoch else {"epoch": epoch})
    return False


def ask(engine: Announcement, path: str, timeout_s: float) -> control.Answer:
    """Returns the engine's answer to a GET request. Raises OSError, HTTPException or ValueError if there is none in time."""
    connection = process_tls.http_connection(engine.address, engine.certificate, timeout_s)
    try:
        connection.request("GET", path, headers=control.headers(engine.token))
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.status != 200:
        raise ValueError(f"the engine answered {response.status}")
    return control.decode(body)


def forget(lake: Lake, epoch: int) -> None:
    """Removes the announcement and the lease of this epoch, unless a later engine has a lease.

    One that takes it at this moment notices that its lease is missing, and repeats its announcement.
    """
    holder = documents.read(lake.store, LEASE)
    if holder is None or holder["epoch"] <= epoch:
        current = announced(lake)
        is_mine = current is not None and current.epoch == epoch
        lake.store.discard([ANNOUNCEMENT, LEASE] if is_mine else [LEASE])


def wait_until_gone(announcement: Announcement, *, insist: bool) -> None:
    """Waits until the JVM of an earlier engine on this machine has ended.

    Raises 55000 on timeout. If not `insist`, returns instead, and does not wait for a running engine.
    """
    if announcement.jvm is None or not announcement.machine.is_here:
        return
    deadline = time.monotonic() + GONE_TIMEOUT_S
    while announcement.jvm.lives():
        if not insist and announcement.process.lives():
            return  # a running engine is being replaced; it will notice at its next entry
        if time.monotonic() > deadline:
            if not insist:
                return
            raise ObjectNotInPrerequisiteState(
                f"the JVM of an earlier engine still runs as process {announcement.jvm.pid}",
                hint="End that process, or start anyway with --take-over.",
            )
        time.sleep(GONE_POLL_S)
