"""Sends values between a gateway and its worker processes over a socket, pickled.

    number of catalogs, number of frames, length of each frame; the catalogs, the pickle, its buffers

Each item of a catalog is pickled separately, once, and the pickle is cached: one call that pickles
a thousand items would hold the interpreter's lock for 20 ms.
"""

from __future__ import annotations

import io
import pickle
import socket
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tailgate.gateway.resources.budgets import UNLIMITED, Cache
from tailgate.lake.catalog import Catalog, Item

PICKLED_BYTES = 64 << 20  # of cached pickles and their items; the definition of an item has up to 4 MiB
PIECE_BYTES = 1 << 20  # sent or received in one call

_pickled: Cache[int, tuple[Item, bytes]] = Cache(UNLIMITED, PICKLED_BYTES)  # by id() of the item


class Closed(Exception):
    """The peer has closed the socket."""


class _Pickler(pickle.Pickler):
    """A pickler that replaces catalogs by their position in `catalogs`."""

    def __init__(self, file: io.BytesIO, buffers: list[pickle.PickleBuffer]) -> None:
        super().__init__(file, 5, buffer_callback=buffers.append)
        self.catalogs: list[Catalog] = []

    def persistent_id(self, value: Any) -> Any:
        if not isinstance(value, Catalog):
            return None
        self.catalogs.append(value)
        return len(self.catalogs) - 1


class _Unpickler(pickle.Unpickler):
    """An unpickler that replaces positions by the received catalogs."""

    def __init__(self, file: io.BytesIO, buffers: Sequence[bytearray], catalogs: list[Catalog]) -> None:
        super().__init__(file, buffers=buffers)
        self._catalogs = catalogs

    def persistent_load(self, number: Any) -> Catalog:
        return self._catalogs[int(number)]


def send(to: socket.socket, value: Any) -> None:
    """Sends a value. Blocks. Raises OSError."""
    buffers: list[pickle.PickleBuffer] = []
    file = io.BytesIO()
    pickler = _Pickler(file, buffers)
    pickler.dump(value)
    catalogs = b"".join(part for catalog in pickler.catalogs for part in _parts(catalog))
    frames = [memoryview(catalogs), file.getbuffer(), *(b.raw() for b in buffers)]
    to.sendall(struct.pack(f">II{len(frames)}Q", len(pickler.catalogs), len(frames), *(len(f) for f in frames)))
    for frame in frames:
        for at in range(0, len(frame), PIECE_BYTES):
            to.sendall(frame[at : at + PIECE_BYTES])


def _parts(catalog: Catalog) -> list[bytes]:
    """Returns the pickles of a catalog: its properties without items, then each item."""
    head = (
        len(catalog.items),
        replace(catalog, items={}, roles=dict(catalog.roles), schemas=dict(catalog.schemas), access=dict(catalog.access)),
    )
    parts = [pickle.dumps(head, 5)]
    for item in catalog.items.values():
        cached = _pickled.get(id(item))
        if cached is None or cached[0] is not item:
            cached = item, pickle.dumps(item, 5)
            _pickled.put(id(item), cached, 2 * len(cached[1]))  # the item takes about as much memory as its pickle
        parts.append(cached[1])
    return parts


def receive(source: socket.socket) -> Any:
    """Receives a value. Blocks. Raises Closed or OSError."""
    count, number = struct.unpack(">II", _read(source, 8))
    sizes = struct.unpack(f">{number}Q", _read(source, 8 * number))
    first, pickled, *buffers = [_read(source, size) for size in sizes]
    file = io.BytesIO(first)
    catalogs: list[Catalog] = []
    for _ in range(count):
        size, catalog = pickle.load(file)
        items = [pickle.load(file) for _ in range(size)]
        catalogs.append(replace(catalog, items={item.id: item for item in items}))
    return _Unpickler(io.BytesIO(pickled), buffers, catalogs).load()


def _read(source: socket.socket, size: int) -> bytearray:
    """Receives exactly `size` bytes. Raises Closed."""
    data = bytearray(size)
    view = memoryview(data)
    at = 0
    while at < size:
        got = source.recv_into(view[at : at + PIECE_BYTES])
        if not got:
            raise Closed
        at += got
    return data
