"""Keepalive of TCP: the end of a connection to a machine that fails, or that the network no longer reaches, is noticed within a minute."""

from __future__ import annotations

import socket

OPTIONS = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))  # seconds, and the number of probes


def keep_alive(connection: socket.socket) -> None:
    """Lets the kernel end the connection if its other side does not answer."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in OPTIONS:
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
