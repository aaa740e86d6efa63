"""`python -m gateway.workers.template FD`: the process from which the others are forked, with all modules loaded.

    the gateway ──socket FD──► b"f" and a socket    fork: the child answers on that socket (`child`)
                               b"k" and a number    the child with this process number is ended

It has one thread, so a fork of it is whole; what is loaded is shared with its children. It ends with the gateway, whose end of the socket
is gone then, and its children with it.
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

from gateway.workers import messages
from lake.errors import OutOfMemory, StatementTooComplex, TailgateError

# Loaded before the first fork: what is loaded in a child is loaded in each.
MODULES = ("gateway.server", "sql.compute", "sql.definitions")
WARM = "gateway.workers.warm"
COMMAND_BYTES = 9
PR_SET_PDEATHSIG = 1


def main(number: int) -> None:
    control = socket.socket(fileno=number)
    if hasattr(resource, "RLIMIT_DATA"):  # the gateway's own limit, of the moment at which this process was begun
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the gateway says when it is over
    for name in MODULES:
        importlib.import_module(name)
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
    """Answers one request after the other until the gateway hangs up. Never returns."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        gc.disable()  # it lives for one statement
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
    """Lets this process take so many bytes more than it has."""
    if size and hasattr(resource, "RLIMIT_DATA"):
        used = 0
        with contextlib.suppress(OSError, ValueError), open("/proc/self/status") as file:
            used = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmData:"))
        resource.setrlimit(resource.RLIMIT_DATA, (used + size, used + size))


def _answer(work, arguments):  # type: ignore[no-untyped-def]
    """("done", the result), ("error", an error of the statement), ("failed", words of one of ours)."""
    try:
        return "done", work(*arguments)
    except TailgateError as error:
        return "error", error
    except RecursionError:
        return "error", StatementTooComplex("stack depth limit exceeded", hint="The statement nests too deep.")
    except MemoryError:
        return "error", OutOfMemory("out of memory")
    except Exception as error:  # noqa: BLE001  # told where the statement came from
        import traceback

        return "failed", f"{type(error).__name__}: {error}\n{traceback.format_exc()}"


if __name__ == "__main__":
    main(int(sys.argv[1]))
