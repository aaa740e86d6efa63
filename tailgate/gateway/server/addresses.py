"""The addresses on which a server listens."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import cast

from tailgate.lake.errors import SystemError_


async def resolved(host: str, port: int) -> list[tuple[int, tuple[str, int]]]:
    """Returns the families and addresses of a host; without a host, all addresses of this machine. Raises 58000."""
    loop = asyncio.get_running_loop()
    try:
        addresses = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise SystemError_(f"could not resolve the address {host}: {error.strerror}") from error
    return [(family, cast(tuple[str, int], address)) for family, _, _, _, address in dict.fromkeys(addresses)]


def is_loopback(host: str) -> bool:
    """Returns whether only processes of this machine reach a host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
