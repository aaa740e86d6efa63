"""The sockets that clients connect to. A port belongs to one lake; gateways of that lake may share it.

    listen alone ──ok──► SO_REUSEPORT on: siblings may join
        │ in use
        └──► [a gateway of this lake has announced the address, and lives before and after?] ──► listen with SO_REUSEPORT
                  └── no, for TAKEN_S ──► 55006, with the process and the folder that hold the port

SO_REUSEPORT from the start would let a gateway of any lake join: the kernel asks for the same user only, and gives clients to
either at random. A socket that listens alone first is the only one, and every later one has found a sibling.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from typing import TYPE_CHECKING

from lake import peers, ports
from lake.errors import of

if TYPE_CHECKING:
    from pathlib import Path

    from lake import Lake

TAKEN_S = 2.0  # a sibling that starts has not announced itself yet, one that was killed may hold the port for a moment
TAKEN_POLL_S = 0.05
SHARED = getattr(socket, "SO_REUSEPORT", None)


async def sockets(lake: Lake, host: str, port: int, backlog: int) -> list[socket.socket]:
    """Listening sockets for all addresses of a host. Raises 55006 if somebody else has the port, 58000 for an unusable address."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise of("58000", f"could not resolve the address {host}: {error.strerror}") from error
    made: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            with contextlib.suppress(_Unsupported):
                made.append(await _listening(lake, family, address, backlog))
    except BaseException:
        close(made)
        raise
    if not made:
        raise of("58000", f"could not listen on {host or 'all addresses'}: no address of this machine")
    return made


def close(made: list[socket.socket]) -> None:
    for each in made:
        each.close()


class _Unsupported(Exception):
    """A family of addresses that this machine does not have, such as IPv6."""


async def _listening(lake: Lake, family: int, address: tuple[str, int], backlog: int) -> socket.socket:
    deadline = asyncio.get_running_loop().time() + TAKEN_S
    while True:
        if (alone := _bound(family, address, backlog, shared=False)) is not None:
            if SHARED is not None:
                alone.setsockopt(socket.SOL_SOCKET, SHARED, 1)
            return alone
        siblings = _siblings(lake, address)
        if siblings and SHARED is not None and (joined := _bound(family, address, backlog, shared=True)) is not None:
            if siblings & _siblings(lake, address):
                return joined
            joined.close()  # the sibling may have gone before: this may be another lake's port by now
        if asyncio.get_running_loop().time() > deadline:
            raise of("55006", await asyncio.to_thread(ports.taken, *address[:2]), hint="Stop that process, or choose another port.")
        await asyncio.sleep(TAKEN_POLL_S)


def _siblings(lake: Lake, address: tuple[str, int]) -> set[Path]:
    """The announcements of living gateways of the lake that listen on this very address."""
    return {peer.path for peer in peers.announced(lake) if address[:2] in peer.listens}


def _bound(family: int, address: tuple[str, int], backlog: int, *, shared: bool) -> socket.socket | None:
    """A listening socket; None if the address is in use."""
    try:
        made = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        raise _Unsupported from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared and SHARED is not None:
            made.setsockopt(socket.SOL_SOCKET, SHARED, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(backlog)
        made.setblocking(False)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            return None
        if error.errno == errno.EADDRNOTAVAIL:
            raise _Unsupported from None
        raise of("58000", f"could not listen on {address[0]}, port {address[1]}: {error.strerror}") from error
    return made
