"""The sockets that clients connect to. A port belongs to one lake; gateways of that lake may share it.

    listen exclusively ──ok──► set SO_REUSEPORT: gateways of the same lake may join
        │ in use
        └──► [a gateway of this lake has announced the address, and is alive before and after?] ──► listen with SO_REUSEPORT
                  └── no, for TAKEN_S ──► 55006, with the process and the folder that use the port

With SO_REUSEPORT from the beginning, a gateway of any lake could join: the kernel only requires the same user, and distributes clients
at random. Therefore the first socket listens exclusively, and each later one must find a gateway of the same lake on the port.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket

from tailgate.gateway.server.addresses import resolved
from tailgate.lake import peers
from tailgate.lake.errors import ObjectInUse, SystemError_
from tailgate.lake.folder import Lake
from tailgate.lake.host import ports

TAKEN_S = 2.0  # a starting gateway may not be announced yet, and a killed one may keep the port for a moment
TAKEN_POLL_S = 0.05
SHARED = getattr(socket, "SO_REUSEPORT", None)


async def sockets(lake: Lake, host: str, port: int, backlog: int) -> list[socket.socket]:
    """Returns listening sockets for all addresses of a host.

    Raises 55006 if another process uses the port, and 58000 for an unusable address.
    """
    addresses = await resolved(host, port)
    listening: list[socket.socket] = []
    try:
        for family, address in addresses:
            with contextlib.suppress(_Unsupported):
                listening.append(await _listening(lake, family, address, backlog))
    except BaseException:
        close(listening)
        raise
    if not listening:
        raise SystemError_(f"could not listen on {host or 'all addresses'}: no address of this machine")
    return listening


def close(listening: list[socket.socket]) -> None:
    for each in listening:
        each.close()


class _Unsupported(Exception):
    """An address family, such as IPv6, that this machine does not support."""


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
            joined.close()  # the other gateway has ended: the port may belong to another lake now
        if asyncio.get_running_loop().time() > deadline:
            raise ObjectInUse(await asyncio.to_thread(ports.taken, *address[:2]), hint="Stop that process, or choose another port.")
        await asyncio.sleep(TAKEN_POLL_S)


def _siblings(lake: Lake, address: tuple[str, int]) -> set[str]:
    """Returns the announcements of the lake's running gateways that listen on exactly this address."""
    return {peer.name for peer in peers.of_this_machine(lake) if address[:2] in peer.listens}


def _bound(family: int, address: tuple[str, int], backlog: int, *, shared: bool) -> socket.socket | None:
    """Returns a listening socket, or None if the address is in use."""
    try:
        listening = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        raise _Unsupported from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared and SHARED is not None:
            listening.setsockopt(socket.SOL_SOCKET, SHARED, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
        listening.listen(backlog)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            return None
        if error.errno == errno.EADDRNOTAVAIL:
            raise _Unsupported from None
        raise SystemError_(f"could not listen on {address[0]}, port {address[1]}: {error.strerror}") from error
    return listening
