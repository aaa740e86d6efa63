"""Objects by which processes announce that they run, until they end: `gateways/`, `processes/`, `sinks.json`.

An announcement names its process and its machine. Only processes of this machine can be checked: one that has crashed cannot remove
its announcement, so the next process that looks removes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict

from tailgate.lake.host.processes import Machine, Process
from tailgate.lake.store import documents
from tailgate.lake.store.documents import Document
from tailgate.lake.store.interface import Store

SUFFIX = ".json"


def of_this_process() -> Document:
    """Returns the fields that name this process and its machine."""
    return {**asdict(Process.of(os.getpid())), **fields_of(Machine.here())}


def ended(announcement: Document) -> bool:
    """Returns whether the process was on this machine and does not exist any more."""
    return machine_of(announcement).is_here and not _process(announcement).lives()


def running(store: Store, folder: str, *, elsewhere: bool = False) -> Iterator[tuple[str, Document]]:
    """Yields the names and announcements of the running processes of this machine. Removes those of processes that have ended.

    `elsewhere`: also yields those of other machines, whether or not the processes run.
    """
    for name in (f"{folder}/{file}" for file in store.names(folder) if file.endswith(SUFFIX)):
        announcement = documents.read(store, name)
        if announcement is None:
            continue
        if not machine_of(announcement).is_here:
            if elsewhere:
                yield name, announcement
        elif _process(announcement).lives():
            yield name, announcement
        else:
            store.discard([name])


def fields_of(machine: Machine) -> Document:
    """Returns the fields that name a machine."""
    return {"host": machine.host, "machine": machine.id}


def machine_of(announcement: Document) -> Machine:
    """Returns the machine of a process. Version 0.1 wrote no host."""
    return Machine(announcement.get("host", Machine.here().host), announcement.get("machine", ""))


def _process(announcement: Document) -> Process:
    return Process(announcement["pid"], announcement.get("started", 0), announcement.get("boot", ""))
