"""Tailgate's processes in tests are forked from a server that has imported their modules.

    Popen([sys.executable, "-m", "tailgate", "engine", …]) ──request, descriptors──► server ──clone──► the process
                                                           ◄──────process id────────

The imports of an engine take 1.3 s of CPU, a third of its start, and the tests start hundreds of processes. A forked process has the
arguments, environment, folder, session and descriptors that Popen would give it. It is a child of the test's process and not of the
server, so waiting, signals and exit codes work as usual. Only its command line in /proc is that of the server. Other commands than those
in PRELOADED, such as `tailgate up`, are executed, and so are the processes that they start. So is everything on systems other than Linux.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import importlib
import inspect
import json
import os
import platform
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tailgate.embedded.children import _REGISTER_THEN_RUN

# Words after `python -m`, and the modules that such a process imports. The server imports them before it forks the first one.
PRELOADED: dict[tuple[str, ...], tuple[str, ...]] = {
    ("tailgate", "engine"): ("tailgate.engine.runtime.main",),
    ("tailgate", "repartition"): ("tailgate.engine.runtime.repartition",),
    ("tailgate", "gateway"): ("tailgate.gateway.main", "tailgate.gateway.http.server"),
    ("tailgate", "sinks"): ("tailgate.sinks.main",),
    ("tests.lake.test_kill",): ("pytest", "testing.s3", "tests.lake.relations", "tailgate.lake.writer.rounds"),
    ("tests.tables.engine",): ("tests.sparkless",),
}
# Without it, these libraries start threads when they are imported. So does DuckDB, but its thread only waits, as in the processes that
# `tailgate.gateway.workers.template` forks.
WITHOUT_THREADS = {"OPENBLAS_NUM_THREADS": "1", **dict.fromkeys(("JE_ARROW_MALLOC_CONF", "_RJEM_MALLOC_CONF"), "background_thread:false")}
LENGTH_BYTES = 4  # of a request, before its JSON
PID_BYTES = 8
ANSWER_S = 120.0  # for the imports of all modules on a busy machine
DESCRIPTORS_MAX = 16  # of a process
HIGH = 1000  # descriptors that a forked process moves are above it
CLONE_PARENT = 0x8000  # from linux/sched.h: the parent of the process is that of the caller
SYS_CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine()) if sys.platform == "linux" else None


@dataclass(frozen=True)
class Request:
    """A process: its module and arguments. `preloaded`: modules that it needs. `targets`: the numbers of the descriptors that are sent.

    `registers`: whether it registers its process group (`tailgate.embedded.children`).
    """

    module: str
    arguments: list[str]
    preloaded: tuple[str, ...]
    folder: str
    environment: dict[str, str]
    starts_session: bool
    registers: bool
    targets: list[int]


# ---- the test's process


class Server:
    """The server of this process, which starts with the first request. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def fork(self, request: Request, descriptors: list[int]) -> int:
        """Returns the id of a new process, or 0 if the server cannot fork or has ended. The next request starts another one then."""
        body, answer = json.dumps(asdict(request)).encode(), b""
        with self._lock:
            try:
                control = self._control or self._started()
                with contextlib.suppress(OSError):
                    socket.send_fds(control, [len(body).to_bytes(LENGTH_BYTES, "big")], descriptors)
                    control.sendall(body)
                    answer = control.recv(PID_BYTES, socket.MSG_WAITALL)
            finally:
                if len(answer) < PID_BYTES:  # also after an exception of a time limit: the next request would get this answer
                    self._end()
        return int.from_bytes(answer, "big")

    def _started(self) -> socket.socket:
        self._control, theirs = socket.socketpair()
        self._control.settimeout(ANSWER_S)
        with theirs:
            command = [sys.executable, "-m", "testing.fork_server", str(theirs.fileno())]
            environment = {**os.environ, **WITHOUT_THREADS, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self._process = subprocess.Popen(command, pass_fds=(theirs.fileno(),), env=environment, stdin=subprocess.DEVNULL)
        return self._control

    def stop(self) -> None:
        """Ends the server, and not the processes that it has forked."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._control = self._process = None


_server = Server()
_execute = subprocess.Popen._execute_child  # type: ignore[attr-defined]  # private
_parameters = inspect.signature(_execute)


def install() -> None:
    """Makes Popen fork the commands in PRELOADED."""
    if SYS_CLONE is not None:
        subprocess.Popen._execute_child = _execute_or_fork  # type: ignore[attr-defined]


def uninstall() -> None:
    """Makes Popen execute all commands, and ends the server."""
    subprocess.Popen._execute_child = _execute  # type: ignore[attr-defined]
    _server.stop()


def _execute_or_fork(process: subprocess.Popen[Any], *arguments: Any) -> None:
    """Starts the command of a Popen: in place of its method `_execute_child`."""
    given = _parameters.bind(process, *arguments).arguments
    request = _request(given)
    if request is not None:
        pipes = [given["p2cread"], given["c2pwrite"], given["errwrite"]]
        standard = [number if pipe == -1 else pipe for number, pipe in enumerate(pipes)]
        pid = _server.fork(request, [*standard, *request.targets[len(standard) :]])
        if pid:
            process.pid, process._child_created = pid, True  # type: ignore[attr-defined]
            ends = (given["p2cread"], given["p2cwrite"], given["c2pread"], given["c2pwrite"], given["errread"], given["errwrite"])
            process._close_pipe_fds(*ends)  # type: ignore[attr-defined]
            return
    _execute(process, *arguments)


def _request(given: dict[str, Any]) -> Request | None:
    """Returns the request for a command, or None if it has to be executed."""
    words, environment = given["args"], os.environ if given["env"] is None else given["env"]
    if isinstance(words, str | bytes | os.PathLike) or given["preexec_fn"] is not None or given["shell"]:
        return None
    registers = list(words[:4]) == ["/bin/sh", "-c", _REGISTER_THEN_RUN, "sh"]
    words = [str(word) for word in (words[4:] if registers else words)]
    if words[:2] != [sys.executable, "-m"] or "LD_PRELOAD" in environment or not given["close_fds"]:
        return None
    preloaded = PRELOADED.get(tuple(words[2:4])) or PRELOADED.get(tuple(words[2:3]))
    targets = [0, 1, 2, *sorted(number for number in given["pass_fds"] if number > 2)]
    if preloaded is None or len(targets) > DESCRIPTORS_MAX or max(targets) >= HIGH:
        return None
    folder = os.getcwd() if given["cwd"] is None else os.fspath(given["cwd"])
    return Request(words[2], words[3:], preloaded, folder, dict(environment), given["start_new_session"], registers, targets)


# ---- the server


def serve(number: int) -> Request:
    """Forks processes until the test's process closes the socket. Returns in each of them, with its request."""
    control = socket.socket(fileno=number)
    # Ctrl-C reaches all processes of the group; the test's process ends this one. A shell ignores it in a background process.
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    from tailgate.cli import _WithoutPandas

    sys.meta_path.insert(0, _WithoutPandas())
    while True:
        length, descriptors, _, _ = socket.recv_fds(control, LENGTH_BYTES, DESCRIPTORS_MAX)
        if not length:
            os._exit(0)
        request = Request(**json.loads(control.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)))
        for name in request.preloaded:
            importlib.import_module(name)
        gc.freeze()  # a collection does not write to the memory that the processes share
        begun, begins = os.pipe()
        pid = _fork() if is_alone() else 0
        if pid == 0 and os.getpid() != _PID:
            control.detach()
            signal.signal(signal.SIGINT, interrupt)
            _become(request, descriptors)
            return request
        for descriptor in (*descriptors, begins):
            os.close(descriptor)
        os.read(begun, 1)  # until the process has its session, as Popen waits; it closes its end
        os.close(begun)
        control.sendall(max(pid, 0).to_bytes(PID_BYTES, "big"))


_PID = os.getpid()
_libc = ctypes.PyDLL(None)
_libc.syscall.restype = ctypes.c_long


def _fork() -> int:
    """Forks a sibling of this process, as os.fork does a child."""
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = int(_libc.syscall(SYS_CLONE, CLONE_PARENT | signal.SIGCHLD, None, None, None, None))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    return pid


def is_alone() -> bool:
    """Returns whether this process has no thread that computes. A fork has one thread, and the others may hold locks."""
    return len(os.listdir("/proc/self/task")) == 1 + ("duckdb" in sys.modules)


def _become(request: Request, descriptors: list[int]) -> None:
    """Gives this process the session, descriptors, folder and environment of a request."""
    if request.starts_session:
        os.setsid()
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, HIGH) for descriptor in descriptors]
    os.closerange(0, HIGH)
    for descriptor, target in zip(moved, request.targets, strict=True):
        os.dup2(descriptor, target)
        os.close(descriptor)
    if request.registers:
        with contextlib.suppress(OSError):  # its watcher was killed
            os.write(0, f"+ {os.getpid()}\n".encode())
        with Path(os.devnull).open() as empty:
            os.dup2(empty.fileno(), 0)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    from tailgate.lake.host import crash

    importlib.reload(crash)  # it reads the environment


if __name__ == "__main__":
    from tailgate.cli import run_and_end

    process = serve(int(sys.argv[1]))
    sys.argv = [process.module, *process.arguments]
    # At a normal exit, DuckDB waits for its thread, which a forked process does not have.
    run_and_end(lambda: runpy.run_module(process.module, run_name="__main__", alter_sys=True))
