"""The lock of the catalog, for one statement at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.control.control import Client
from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.lake.errors import QueryCanceled

TURN_S = 0.1  # between two checks whether a statement that waits for the lock of the catalog is canceled


@contextmanager
def turn(installation: Installation, client: Client) -> Iterator[None]:
    """Holds the lock of the catalog, and asks brokers about each topic once. The first change of the catalog gets the statement's id.

    Raises 57014 if the client cancels the statement before the lock is acquired. Such a statement must
    not take effect later: its client may have dropped the object that it creates.
    """
    while not installation.lock.acquire(timeout=TURN_S):
        check_canceled(client)
    try:
        check_canceled(client)
        with kafka.each_topic_once(), named(installation, client.attempt.id):
            yield
    finally:
        installation.lock.release()


@contextmanager
def named(installation: Installation, id: str) -> Iterator[None]:
    """Gives the next change of the catalog an id, by which a repeated statement is found. The caller holds the lock."""
    writer = installation.engine.writer
    writer.statement = id
    try:
        yield
    finally:
        writer.statement = ""


def check_canceled(client: Client) -> None:
    """Raises 57014 if the client has canceled its statement or has disconnected."""
    if client.gone():
        raise QueryCanceled("canceling statement due to user request")
