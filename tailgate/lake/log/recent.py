"""The newest entries of the log in memory, for processes that receive them from the engine."""

from __future__ import annotations

import threading
from collections import OrderedDict

import pyarrow as pa

SENT_BYTES_MAX = 1 << 20  # of an entry that the engine sends to gateways and sinks; they read a larger one from the store
RECENT_BYTES_MAX = 16 << 20  # of the entries in memory: seconds of a busy log


class RecentEntries:
    """The bytes of entries by number, the last RECENT_BYTES_MAX of them. Safe from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, pa.Buffer] = OrderedDict()
        self._size = 0

    def get(self, n: int) -> pa.Buffer | None:
        """Returns the bytes of entry n, or None if they are not in memory."""
        with self._lock:
            return self._entries.get(n)

    def put(self, n: int, content: bytes) -> None:
        """Adds entry n. Removes the oldest ones if there are too many bytes."""
        aligned = pa.allocate_buffer(len(content))  # Arrow computes with the entry in place
        memoryview(aligned).cast("B")[:] = content
        with self._lock:
            if n in self._entries:
                return
            self._entries[n] = aligned
            self._size += len(content)
            while self._size > RECENT_BYTES_MAX:
                self._size -= self._entries.popitem(last=False)[1].size
