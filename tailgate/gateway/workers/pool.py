"""Worker processes: forked on demand, ended when the work is done, late, cancelled or too large.

`Worker()`, `Worker.call` and `Worker.end` block; the event loop uses `Workers.aside`.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tailgate.gateway.resources.concurrency import REQUESTER, RESERVE, Limiter
from tailgate.gateway.resources.threads import started
from tailgate.gateway.workers import cpu_limit, messages
from tailgate.lake.errors import InsufficientResources, OutOfMemory, QueryCanceled, StatementTooComplex

log = logging.getLogger("tailgate.gateway")

AT_ONCE = 4  # concurrent processes; two of them keep two cores busy
EACH = 2  # of one role
PREPARE_S = 60.0  # seconds per call, unless statement_timeout ends it sooner
WORKER_BYTES = 512 << 20  # memory of a process, not counting memory shared with the template
START_S = 30.0  # seconds until a process must answer; only an overloaded machine needs so long

Result = TypeVar("Result")


class Template:
    """The process that workers are forked from, started on demand and after it died. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start(self) -> None:
        with self._lock:
            self._begun()

    def _begun(self) -> socket.socket:
        """Returns the socket of the template; starts the process if needed."""
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._control is None:
            ours, theirs = socket.socketpair()
            command = [sys.executable, "-m", "tailgate.gateway.workers.template", str(theirs.fileno())]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join([p for p in sys.path if p])}
            with theirs:
                self._process = subprocess.Popen(command, pass_fds=(theirs.fileno(),), env=environment, stdin=subprocess.DEVNULL)
            self._control = ours
        return self._control

    def _end(self) -> None:
        """Ends the template and with it all workers."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def command(self, letter: bytes, number: int, descriptors: tuple[int, ...] = ()) -> None:
        """Sends a command; starts the template if needed. Raises OSError if that fails."""
        data = letter + number.to_bytes(8, "big")
        with self._lock:
            try:
                socket.send_fds(self._begun(), [data], descriptors)
            except OSError:  # the template has just ended, and all workers with it
                self._end()
                if letter == b"f":
                    socket.send_fds(self._begun(), [data], descriptors)

    def stop(self) -> None:
        with self._lock:
            self._end()


TEMPLATE = Template()
atexit.register(TEMPLATE.stop)


class Worker:
    """One worker process. `call` from one thread at a time, `end` from any."""

    def __init__(self, size: int = WORKER_BYTES) -> None:
        self._socket, theirs = socket.socketpair()
        try:
            with theirs:
                TEMPLATE.command(b"f", 0, (theirs.fileno(),))
            self._socket.settimeout(START_S)
            pid = self._socket.recv(8, socket.MSG_WAITALL)
            self._pid = int.from_bytes(pid, "big")
            self._socket.sendall(size.to_bytes(8, "big"))
            self._socket.settimeout(None)
        except OSError as error:
            self._socket.close()
            raise InsufficientResources("no process can be started for a long statement", hint="Try again in a moment.") from error
        self._lock = threading.Lock()
        self._ended = False

    def fileno(self) -> int:
        """Returns a descriptor that is readable once there is an answer."""
        return self._socket.fileno()

    def call(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Returns the result of `work` in the process. Raises its error, or 53200 if the process is gone."""
        self.ask(work, *arguments)
        result: Result = self.answer()
        return result

    def ask(self, work: Callable[..., Any], *arguments: Any) -> None:
        try:
            messages.send(self._socket, (work, arguments))
        except OSError:
            raise OutOfMemory("out of memory", detail="The process that worked on the statement ended.") from None

    def answer(self) -> Any:
        """Returns the answer to `ask`, or raises its error. Blocks."""
        try:
            kind, answer = messages.receive(self._socket)
        except (messages.Closed, OSError):
            raise OutOfMemory("out of memory", detail="The process that worked on the statement ended.") from None
        if kind == "error":
            raise answer
        if kind == "failed":
            log.error("work in a process of its own failed: %s", answer)
            raise RuntimeError(answer.split("\n", 1)[0])
        return answer

    def end(self) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended = True
        TEMPLATE.command(b"k", self._pid)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits in `call`
        self._socket.close()


class Workers:
    """The worker processes of a gateway. `size` is the memory of each, in bytes."""

    def __init__(self, size: int = WORKER_BYTES) -> None:
        self._size = size
        self._turns = Limiter(AT_ONCE, EACH)
        self._threads = started(AT_ONCE + RESERVE + 1, "tailgate-worker")
        self._runs: set[_Run] = set()

    async def run_bounded(
        self, work: Callable[..., Result], *arguments: Any, in_worker: Callable[[], Result] | None = None, long: bool = False
    ) -> Result:
        """Returns the result of `work`, computed here in one slice or else in a worker process.

        In a process, `in_worker` replaces `work` if given. `long` skips the attempt here. `work` must be
        a module-level function without side effects; its arguments and result are pickled.
        Cancelling the task ends it.
        """
        if not long:
            try:
                return cpu_limit.run(work, *arguments)
            except cpu_limit.Exceeded:
                pass
        return await (self.run_in_worker(work, *arguments) if in_worker is None else self.run_in_worker(in_worker))

    async def run_in_worker(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Returns the result of `work` from a worker process. Raises 54001 after PREPARE_S seconds."""
        with await self._turns.take(REQUESTER.get()):
            run = _Run(self._size, work, arguments)
            self._runs.add(run)
            future = asyncio.get_running_loop().run_in_executor(self._threads, run)
            try:
                finished, _ = await asyncio.wait((future,), timeout=PREPARE_S)
                if not finished:
                    raise StatementTooComplex(
                        "statement is too complex", detail=f"Preparing it took more than {PREPARE_S:.0f} s.", hint="Split the statement."
                    )
                result: Result = future.result()
                return result
            finally:
                future.add_done_callback(lambda f: f.cancelled() or f.exception())
                self._runs.discard(run)
                self._threads.submit(run.end)

    def close(self) -> None:
        """Ends all worker processes. Blocks until they have ended."""
        for run in list(self._runs):
            run.end()
        self._threads.shutdown()


class _Run:
    """One call in one worker process. `end` may be called before the process exists."""

    def __init__(self, size: int, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._size, self._work, self._arguments = size, work, arguments
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self._ended = False

    def __call__(self) -> Any:
        worker = Worker(self._size)
        with self._lock:
            self._worker = worker
            ended = self._ended
        if ended:
            worker.end()
            raise QueryCanceled("canceling statement due to user request")
        return worker.call(self._work, *self._arguments)

    def end(self) -> None:
        with self._lock:
            self._ended = True
            worker = self._worker
        if worker is not None:
            worker.end()
