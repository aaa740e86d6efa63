"""Finds the process of this machine that listens on a TCP port, and its data folder, for messages. Uses /proc.

    /proc/net/tcp, tcp6 ──► inodes of listening sockets ──► /proc/<pid>/fd ──► /proc/<pid>/cmdline, cwd

Sockets of other users have no visible process. Without /proc nothing is found.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

LISTEN = "0A"  # the state of listening sockets in /proc/net/tcp
COMMAND_CHARS_MAX = 200  # of a command line, in messages
GATEWAY = "gateway"  # the command of `tailgate` that listens for a data folder
DATA = "tailgate-data"  # the default of --data


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that listens. `data`: the location of the lake, if the process is a gateway of Tailgate."""

    pid: int
    command: str
    data: Path | str | None = None

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})" + (f", over the data folder {self.data}" if self.data is not None else "")


def holders(port: int) -> list[Holder]:
    """Returns the processes that listen on a port of this machine, at any address, as far as this user may see them."""
    inodes = _inodes(port)
    pids = set()
    if inodes:
        for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
            with contextlib.suppress(OSError):  # the process has ended, or belongs to another user
                match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(descriptor))
                if match and match[1] in inodes:
                    pids.add(int(descriptor.parts[2]))
    return [_holder(pid) for pid in sorted(pids)]


def taken(host: str, port: int) -> str:
    """Returns an error message that the port is in use and by which processes."""
    processes = holders(port)
    who = " and ".join(map(str, processes)) if processes else "a process that this user may not see"
    return f"port {port} of {host or 'all addresses'} is in use by {who}"


def _inodes(port: int) -> set[str]:
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(fields[9])
    return inodes


def _holder(pid: int) -> Holder:
    try:
        words = [word.decode("utf-8", "replace") for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]]
        folder = Path(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        return Holder(pid, "it has ended since")
    return Holder(pid, " ".join(words)[:COMMAND_CHARS_MAX], data_folder(words, folder))


def data_folder(words: list[str], folder: Path) -> Path | str | None:
    """Returns the location of the lake of a gateway's command line; None for other programs. `folder`: its working directory.

    >>> data_folder(["python", "-m", "tailgate", "gateway", "--data", "d", "--listen", ":1"], Path("/home"))
    PosixPath('/home/d')
    >>> data_folder(["/bin/tailgate", "gateway", "--data=/lake"], Path("/home"))
    PosixPath('/lake')
    >>> data_folder(["python", "-m", "http.server"], Path("/home")) is None
    True
    """
    at = next((i for i, word in enumerate(words) if Path(word).name == "tailgate"), None)
    if at is None or at + 1 >= len(words) or words[at + 1] != GATEWAY:
        return None
    data = DATA
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--data":
            data = following
        elif word.startswith("--data="):
            data = word.removeprefix("--data=")
    return data if "://" in data else folder / data
