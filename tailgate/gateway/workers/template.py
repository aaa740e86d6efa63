"""`python -m tailgate.gateway.workers.template FD`: the process that workers are forked from.

    gateway ──socket FD──► b"f" and a socket    fork a worker that answers on this socket (`_child`)
                           b"k" and a pid       kill this worker

It has loaded all modules and shares their memory with the workers. It has one thread, so a fork is
complete. When the gateway ends, its end of the socket closes, and the template and all workers end.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Sequence

from tailgate.gateway.mirrors.sandbox import stand_in_for_pandas
from tailgate.gateway.workers import messages
from tailgate.lake.errors import OutOfMemory, StatementTooComplex, TailgateError

# Loaded before the first fork; otherwise each worker would load them.
MODULES = ("tailgate.gateway.server.server", "tailgate.sql.compute", "tailgate.sql.definitions")
WARM = "tailgate.gateway.server.warm_up"
COMMAND_BYTES = 9
PR_SET_PDEATHSIG = 1


def main(number: int) -> None:
    """Forks and kills workers on command until the gateway closes the socket."""
    control = socket.socket(fileno=number)
    if hasattr(resource, "RLIMIT_DATA"):  # make the limit inherited from the gateway final
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the gateway ends this one
    for name in MODULES:
        importlib.import_module(name)
    stand_in_for_pandas()
    importlib.import_module(WARM).warm()
    gc.collect()
    gc.freeze()
    parent = os.getpid()
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, COMMAND_BYTES, 1)
        if not data:
            return
        while len(data) < COMMAND_BYTES:
            data += control.recv(COMMAND_BYTES - len(data))
        process = int.from_bytes(data[1:], "big")
        if data[:1] == b"k":
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, 0)
        elif os.fork() == 0:
            control.close()
            _child(socket.socket(fileno=descriptors[0]), parent)
        for descriptor in descriptors:
            os.close(descriptor)


def _child(gateway: socket.socket, parent: int) -> None:
    """Answers one request after the other until the gateway closes the socket. Never returns."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        gc.disable()  # the process lives for one statement
        if os.getppid() != parent:
            return
        gateway.sendall(os.getpid().to_bytes(8, "big"))
        _limit(int.from_bytes(gateway.recv(8, socket.MSG_WAITALL), "big"))
        while True:
            work, arguments = messages.receive(gateway)
            messages.send(gateway, _answer(work, arguments))
    except (messages.Closed, OSError):
        pass
    except MemoryError:
        with contextlib.suppress(BaseException):
            messages.send(gateway, ("error", OutOfMemory("out of memory")))
    finally:
        os._exit(0)


def _limit(size: int) -> None:
    """Limits the memory of this process to its current size plus `size` bytes."""
    if size and hasattr(resource, "RLIMIT_DATA"):
        used = 0
        with contextlib.suppress(OSError, ValueError), open("/proc/self/status") as file:
            used = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmData:"))
        resource.setrlimit(resource.RLIMIT_DATA, (used + size, used + size))


def _answer(work: Callable[..., object], arguments: Sequence[object]) -> tuple[str, object]:
    """Returns ("done", result), ("error", SQL error), or ("failed", text of an internal error)."""
    try:
        return "done", work(*arguments)
    except TailgateError as error:
        return "error", error
    except RecursionError:
        return "error", StatementTooComplex("stack depth limit exceeded", hint="Split the statement.")
    except MemoryError:
        return "error", OutOfMemory("out of memory")
    except Exception as error:  # noqa: BLE001  # the gateway reports it
        import traceback

        return "failed", f"{type(error).__name__}: {error}\n{traceback.format_exc()}"


if __name__ == "__main__":
    main(int(sys.argv[1]))
