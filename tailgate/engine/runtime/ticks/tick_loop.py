"""The driver's part of the tick loop: asks the JVM for one tick after the other.

    wait()    ──'W'──► tailgate.circuit.TickLoop waits for a reason and fixes the ends of the inputs
    tick(…)   ──'T'──► reads the inputs up to their ends ──'R'──► ends, result
    committed ──'C'──► the inputs continue behind their ends

The messages use a Unix socket, so a result is copied once. The socket's name exists only until the
connection is made, in a folder that no other user can open. Calls that change the inputs use Py4J
and are made between two ticks.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tailgate.engine.plan.circuit.single_records import SingleRecords
from tailgate.engine.runtime.kafka.requests import Offsets
from tailgate.engine.runtime.ticks.tick_result import Ticked, ticked

CLOCK_MS = 10_000  # interval of ticks of an idle engine, so that time advances
TICK_INTERVAL_MS = 25  # shortest time between the starts of two ticks without a write: more of them would only cost CPU


class LoopEnded(RuntimeError):
    """Raised when the JVM no longer answers."""


class TickFailed(RuntimeError):
    """A tick, or the input of the next one, failed in the JVM. It has committed nothing."""

    def __init__(self, exception: Any) -> None:
        super().__init__(str(exception.toString()))
        self.java_exception = exception


@dataclass(frozen=True, slots=True)
class Ends:
    """The positions of the inputs at the end of a tick, the Kafka readers by name.

    `oldest`: by channel, the time of the oldest record that the tick has read, and when it arrived. `single`: the time of the only
    record, if the tick was limited to it.
    """

    inbox: int
    offsets: Mapping[str, Offsets]
    oldest: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    single: int | None = None


class TickLoop:
    """A connection to a `tailgate.circuit.TickLoop`. One thread calls `wait`, `tick` and `committed`.

    `inbox` is the location of the inbox, `consumed` its last entry that the log contains.
    """

    def __init__(self, session: SparkSession, inbox: str, consumed: int) -> None:
        jvm: Any = session._jvm
        with tempfile.TemporaryDirectory(prefix="tailgate-") as folder:
            path = str(Path(folder) / "ticks")
            self._java = jvm.tailgate.circuit.TickLoop(session._jsparkSession, path, inbox, consumed, CLOCK_MS, TICK_INTERVAL_MS)
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(path)
        self._circuit: Any = None

    # ---- ticks -----------------------------------------------------------------------------------

    def wait(self) -> dict[str, TickFailed]:
        """Waits until there is a reason for a tick.

        Returns the failures of readers by name. Those readers are removed.
        """
        self._send(b"W")
        if self._receive(1) != b"N":
            raise LoopEnded("the JVM did not answer the wait for a tick")
        return {name: TickFailed(self._java.failure(name)) for name in json.loads(self._message())}

    def tick(self, circuit: Any, state_path: str, time_ms: int, state: str, parallelism: int) -> tuple[Ends, Ticked]:
        """Runs a tick and returns the ends of its inputs and its result. Raises TickFailed.

        `state` is the state that the tick starts from, as in the result of the last committed one.
        """
        if circuit is not self._circuit:
            self._java.use(circuit)
            self._circuit = circuit
        path, ids = state_path.encode(), state.encode()
        lengths = struct.pack(">cqiI", b"T", time_ms, parallelism, len(path))
        self._send(lengths + path + struct.pack(">I", len(ids)) + ids)
        if self._receive(1) != b"R":
            raise TickFailed(self._java.failure(""))
        ends = json.loads(self._message())
        return Ends(ends["inbox"], ends["readers"], ends["oldest"], ends.get("single")), ticked(self._message())

    def committed(self) -> None:
        """Records that the log contains the last tick. Otherwise the next one repeats it."""
        self._send(b"C")

    def unread(self) -> dict[str, Any]:
        """Returns the oldest records that no tick has read, as `tailgate.circuit.TickLoop` describes. Any thread may call it."""
        return dict(json.loads(self._java.unread()))

    def behind(self) -> dict[str, int]:
        """Returns how many records no tick has read, by channel, as `tailgate.circuit.TickLoop` describes. Any thread may call it."""
        return dict(json.loads(self._java.behind()))

    def held(self) -> dict[str, int]:
        """Returns sizes of the memory of the JVM, as `tailgate.circuit.TickLoop` describes. Any thread may call it."""
        return dict(json.loads(self._java.held()))

    def wake(self) -> None:
        """Ends the wait for a reason. Any thread may call it."""
        with contextlib.suppress(Py4JError, OSError):  # the JVM is gone, and the wait with it
            self._java.wake()

    def close(self) -> None:
        """Closes the inputs. A tick that still runs is cancelled."""
        with contextlib.suppress(Py4JError, OSError):
            self._java.close()
        self._socket.close()

    # ---- inputs, between two ticks ---------------------------------------------------------------

    def add(self, name: str, reader: Any, offsets: Offsets) -> None:
        """Adds a `tailgate.sources.KafkaReader`, which replaces that of the same name."""
        self._java.add(name, reader, json.dumps(offsets))

    def single(self, of: SingleRecords) -> None:
        """Sets the channels of which a tick reads one record while few wait."""
        self._java.single(sorted(of.streams), sorted(of.tables))

    def remove(self, name: str) -> None:
        """Removes a reader, if there is one of this name."""
        self._java.remove(name)

    # ---- messages --------------------------------------------------------------------------------

    def _send(self, message: bytes) -> None:
        try:
            self._socket.sendall(message)
        except OSError as e:
            raise LoopEnded("the JVM has closed the connection of the tick loop") from e

    def _message(self) -> bytearray:
        """Returns the next bytes, whose number comes first (4 bytes, big-endian)."""
        (length,) = struct.unpack(">I", self._receive(4))
        return self._receive(length)

    def _receive(self, length: int) -> bytearray:
        data = bytearray(length)
        view, at = memoryview(data), 0
        while at < length:
            try:
                received = self._socket.recv_into(view[at:])
            except OSError as e:
                raise LoopEnded("the connection of the tick loop failed") from e
            if received == 0:
                raise LoopEnded("the JVM has closed the connection of the tick loop")
            at += received
        return data
