"""Child processes that never outlive their parent, even when the parent is killed.

    parent ── pipe ──► watcher: knows the children's process groups; kills them when the pipe closes
       │                  ▲        (a watcher that was killed is replaced and gets the groups again: `tend`)
       │                  │ "+group", written by the child before it becomes its command, so no child starts unwatched
       └── setsid ──► child ──► its own children, in the same group
                        │
                        └─ output ──► a thread of the parent ──► log file of bounded size

The kernel closes the pipe however the parent ends, also by SIGKILL. The watcher then kills every
remaining group: children and the processes that they started (a JVM below a Python). We do not use a
parent's death signal (PR_SET_PDEATHSIG): it depends on the thread that forked, and does not reach
grandchildren.

Each child leads a session, so Ctrl-C reaches only the parent, which stops its children in order.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from tailgate.lake.host import ports

STOP_GRACE = timedelta(seconds=20)  # a broker flushes its logs, an engine ends its tick; both take 1 to 3 s when healthy
READY_POLL = timedelta(milliseconds=50)  # the slowest child needs 4 s, the fastest 300 ms
PUMP_ENDS = timedelta(seconds=2)  # the output of a killed group ends at once; a limit in case another process keeps it open
PREDECESSOR_ENDS = timedelta(seconds=2)  # a killed process keeps its port for some ms
LOG_BYTES_MAX = 8 << 20  # a child's log and its predecessor: 16 MiB, about a day of a broker's INFO
READ_BYTES = 64 << 10  # a Linux pipe's capacity
LAST_LINES = 20  # lines of a failed child's output in error messages
LINE_BYTES_MAX = 8 << 10  # of a line in error messages; the log has the whole line

# Below Linux's range for outgoing connections (32768 and up), so that no client occupies a remembered port.
PORTS = range(20_000, 32_000)
PORT_TRIES = 100

_WATCHER = """
trap '' INT TERM HUP
while read -r sign group; do
  case $sign in
    +) groups="$groups $group" ;;
    -) kept=; for other in $groups; do [ "$other" = "$group" ] || kept="$kept $other"; done; groups=$kept ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group" 2> /dev/null; done
"""
# If the watcher has just been killed, the parent registers the group with the next one; SIGPIPE must not end the child.
_REGISTER_THEN_RUN = 'trap "" PIPE; echo "+ $$" 2> /dev/null >&0; trap - PIPE; exec "$@" < /dev/null'


class ChildFailed(Exception):
    """A child ended, or was not ready in time. The message contains its last lines of output."""


class _Watcher:
    """The watcher of this process. It is started with the first child, and again whenever it has been killed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._pipe = -1
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def pipe(self) -> int:
        """Returns the writing end of the pipe, on which children register their groups. No child keeps it open."""
        with self._lock:
            self._live()
            return self._pipe

    def remember(self, group: int) -> None:
        """Adds a process group to those that the watcher kills."""
        with self._lock:
            self._live()
            self._groups.add(group)
            self._tell(f"+ {group}\n")

    def forget(self, group: int) -> None:
        """Removes a process group that has ended."""
        with self._lock:
            self._live()
            self._groups.discard(group)
            self._tell(f"- {group}\n")

    def tend(self) -> None:
        """Replaces the watcher if it was killed and there are children."""
        with self._lock:
            if self._groups:
                self._live()

    def _live(self) -> None:
        """Starts a watcher and registers all groups with it, unless this process has a running watcher."""
        if self._owner != os.getpid():  # also in a forked child: the pipe and the groups belong to its parent
            self._owner, self._pipe, self._groups, self._process = os.getpid(), -1, set(), None
        if self._process is not None and self._process.poll() is None:
            return
        if self._pipe >= 0:
            os.close(self._pipe)
        read, self._pipe = os.pipe()
        self._process = subprocess.Popen(  # the watcher ends after this process
            ["/bin/sh", "-c", _WATCHER],
            stdin=read,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        os.close(read)
        self._tell("".join(f"+ {group}\n" for group in self._groups))

    def _tell(self, words: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # the watcher has just been killed: the next one gets all groups
            os.write(self._pipe, words.encode())


_watcher = _Watcher()


def tend() -> None:
    """Replaces the watcher if it was killed. Every process with children calls this from time to time."""
    _watcher.tend()


def watcher() -> int:
    """Returns the process id of the watcher."""
    return _watcher.pid


class Child:
    """A running command. The constructor starts it; it ends with `stop()` or with the parent.

    Output is appended to `log`, which is renamed to `log` + ".1" when it reaches `LOG_BYTES_MAX`.
    `announces` is a text that the command prints when it is ready; `announced()` returns whether it has.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        announces: str | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._announces = announces
        self._announced = threading.Event()
        self._lines: deque[str] = deque(maxlen=LAST_LINES)
        self._ending = threading.Lock()
        self._forgotten = False
        log.parent.mkdir(parents=True, exist_ok=True)
        self._file = log.open("ab", buffering=0)
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _REGISTER_THEN_RUN, "sh", *command],
            stdin=_watcher.pipe(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            cwd=folder,
            start_new_session=True,
        )
        _watcher.remember(self.pid)
        self._pump = threading.Thread(target=self._copy_output, name=f"log of {name}", daemon=True)
        self._pump.start()

    @property
    def pid(self) -> int:
        """Returns the process id of the command, which is also the number of its process group."""
        return self._process.pid

    def returncode(self) -> int | None:
        """Returns None while it runs, else its exit code (negative for a signal). Kills the rest of the group when the child has ended."""
        with self._ending:
            code = self._process.poll()
            if code is not None and not self._forgotten:
                self._kill_group()
                _watcher.forget(self.pid)
                self._forgotten = True
            return code

    def running(self) -> bool:
        return self.returncode() is None

    def announced(self) -> bool:
        """Returns whether the child has printed that it is ready."""
        return self._announced.is_set()

    def wait_ready(self, ready: Callable[[], bool], timeout: timedelta) -> None:
        """Waits until `ready()` is true. Raises ChildFailed if the child ends first or `timeout` passes."""
        deadline = time.monotonic() + timeout.total_seconds()
        while not ready():
            code = self.returncode()
            if code is not None:
                raise ChildFailed(self._failure(f"ended with {code} before it was ready"))
            if time.monotonic() > deadline:
                raise ChildFailed(self._failure(f"was not ready after {timeout.total_seconds():g} s"))
            time.sleep(READY_POLL.total_seconds())

    def wait(self, timeout: timedelta) -> int | None:
        """Waits for the child to end. Returns its exit code, or None after `timeout`."""
        deadline = time.monotonic() + timeout.total_seconds()
        while (code := self.returncode()) is None and time.monotonic() < deadline:
            time.sleep(READY_POLL.total_seconds())
        return code

    def stop(self, grace: timedelta = STOP_GRACE) -> int:
        """Sends SIGTERM, and SIGKILL to the whole group after `grace`. Returns the exit code. May be called again."""
        if self.returncode() is None:
            self._process.terminate()
            self._process.send_signal(signal.SIGCONT)  # a stopped process handles SIGTERM only when it continues
            if self.wait(grace) is None:
                self.kill()
        self._pump.join(PUMP_ENDS.total_seconds())
        code = self.returncode()
        assert code is not None
        return code

    def kill(self) -> None:
        """Sends SIGKILL to the child and its group, and waits until the child has ended."""
        if self.returncode() is None:
            self._kill_group()
            self._process.wait()
            self.returncode()

    def last_lines(self) -> str:
        """Returns the last lines of output, for error messages."""
        return "\n".join(self._lines)

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # the group is empty; macOS reports PermissionError
            os.killpg(self.pid, signal.SIGKILL)

    def _failure(self, what: str) -> str:
        self._pump.join(READY_POLL.total_seconds())  # wait for the last output of a child that has ended
        return f"{self.name} {what}; see {self.log}\n{self.last_lines()}".rstrip()

    def _copy_output(self) -> None:
        """Copies the child's output to its log until the output ends."""
        output = self._process.stdout
        assert output is not None
        rest = b""
        while data := os.read(output.fileno(), READ_BYTES):
            with contextlib.suppress(OSError):  # a full disk must not stop a child, which would block on writing its output
                self._keep(data)
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[:LINE_BYTES_MAX]
            for line in lines:
                self._on_line(line)
        if rest:
            self._on_line(rest)
        self._file.close()
        output.close()

    def _keep(self, data: bytes) -> None:
        if self._file.tell() + len(data) > LOG_BYTES_MAX:
            self.log.replace(self.log.with_name(self.log.name + ".1"))
            full, self._file = self._file, self.log.open("ab", buffering=0)
            full.close()
        self._file.write(data)

    def _on_line(self, line: bytes) -> None:
        text = line[:LINE_BYTES_MAX].decode("utf-8", "replace").rstrip("\r")
        self._lines.append(text)
        if self._announces is not None and self._announces in text:
            self._announced.set()


_given_out: set[int] = set()


class ChildServer(ABC):
    """A server that runs as a child process over a data folder. It may be started again after it was stopped."""

    ready_timeout: timedelta
    _child: Child | None = None

    @property
    def pid(self) -> int:
        assert self._child is not None, "not started"
        return self._child.pid

    def running(self) -> bool:
        return self._child is not None and self._child.running()

    def start(self) -> None:
        """Starts the server and waits until clients can connect. Raises ChildFailed with its last lines of output."""
        if self.running():
            return
        child = self.launch()
        try:
            child.wait_ready(child.announced, self.ready_timeout)
        except ChildFailed:
            child.kill()
            raise

    @abstractmethod
    def launch(self) -> Child:
        """Starts the server without waiting; it announces itself when clients can connect. Raises ChildFailed if its port is in use."""

    def stop(self) -> None:
        """Ends the server; its data is on disk. May be called again."""
        if self._child is not None:
            self._child.stop()


def free_port(count: int = 1) -> int:
    """Returns the first of consecutive ports of 127.0.0.1 on which no process listens. Raises ChildFailed.

    It never returns a port twice in a process.
    """
    for port in random.SystemRandom().sample(PORTS, PORT_TRIES):
        ports = range(port, port + count)
        if _given_out.isdisjoint(ports) and all(free("127.0.0.1", p) for p in ports):
            _given_out.update(ports)
            return port
    raise ChildFailed(f"no free port of 127.0.0.1 in {PORT_TRIES} tries between {PORTS.start} and {PORTS.stop}")


def remembered_port(file: Path, port: int | None, server: str) -> int:
    """Returns the port in a file. If it does not exist, writes `port`, or a free one, to it. Raises ValueError for another port."""
    if not file.exists():
        chosen = port or free_port()
        file.write_text(f"{chosen}\n")
        return chosen
    remembered = int(file.read_text())
    if port not in (None, remembered):
        raise ValueError(f"the {server} of {file.parent} has port {remembered}, which its clients know; {port} was asked for")
    return remembered


def listening(port: int) -> bool:
    """Returns whether a process accepts connections on this port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def await_free(host: str, port: int) -> None:
    """Waits until no process listens on an address. After PREDECESSOR_ENDS, raises ChildFailed, which names the process."""
    deadline = time.monotonic() + PREDECESSOR_ENDS.total_seconds()
    while not free(host, port):
        if time.monotonic() > deadline:
            raise ChildFailed(ports.taken(host, port))
        time.sleep(READY_POLL.total_seconds())


def free(host: str, port: int) -> bool:
    """Returns whether no process listens on an address. Other problems are left to the process that will use it."""
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return True
    for family, kind, protocol, _, address in addresses:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
    return True
