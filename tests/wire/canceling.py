"""Cancels a statement that would run for hours, through another session or another gateway."""

from __future__ import annotations

import socket
import threading
from struct import pack

import psycopg

from testing.engine_process import until
from tests.wire.wire import Client, Query

SLOW = "SELECT count(*) FROM generate_series(1, 3000000) a, generate_series(1, 3000000) b"


def cancel_by_function(canceled: psycopg.Connection, by: psycopg.Connection) -> None:
    """Runs SLOW in one session and cancels it from the other."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            canceled.execute(SLOW)
        except psycopg.Error as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    _wait_until_begun(by, canceled.info.backend_pid)
    assert by.execute("SELECT pg_cancel_backend(%s)", [canceled.info.backend_pid]).fetchone() == (True,)
    thread.join(20)
    assert isinstance(errors[0], psycopg.errors.QueryCanceled)


def cancel_by_request(port: int, other_port: int, asking: psycopg.Connection) -> None:
    """Runs SLOW in a session at `port` and sends a CancelRequest to another gateway, as a load balancer does."""
    client = Client.connect("127.0.0.1", port, "ann", "shop")
    client.send(Query(SLOW))
    _wait_until_begun(asking, client.key[0])
    with socket.create_connection(("127.0.0.1", other_port)) as connection:
        connection.sendall(pack("!III", 12 + len(client.key[1]), 80877102, client.key[0]) + client.key[1])
    assert [letter for letter, _ in client.until_ready()] == ["E", "Z"]
    client.close()


def _wait_until_begun(asking: psycopg.Connection, pid: int) -> None:
    """Waits until the session runs SLOW."""
    text = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND state = 'active' AND query = %s"
    until(lambda: asking.execute(text, [pid, SLOW]).fetchone() == (1,))
