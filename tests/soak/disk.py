"""A tmpfs for one run, in a separate mount namespace, that can be made full.

    unshare ──► this program again, in its namespace ──► mount ──► run ──► the namespace and the mount
                                                                           end with the last process

A tmpfs can be resized at any time: reduced to its used size, it is full at once. Other processes of the
machine do not see it. It needs root, or a kernel that lets users create namespaces.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

INSIDE = "TAILGATE_SOAK_NAMESPACE"  # set in the program that runs in the namespace
COMMAND_TIMEOUT_S = 30.0  # of mount and unshare, which take milliseconds
PAGE = 4096


def missing() -> str | None:
    """Returns what this machine lacks for a separate file system, or None."""
    if INSIDE in os.environ:
        return None
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return "Linux and unshare (util-linux)"
    result = subprocess.run([*_unshare(), "true"], capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S)
    return None if result.returncode == 0 else f"root, or namespaces of users ({result.stderr.strip()})"


def enter(module: str, words: list[str]) -> None:
    """Restarts the module inside a namespace, replacing this process.

    Returns if it is already inside.
    """
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        command = [*_unshare(), sys.executable, "-m", module, *words]
        os.execvp(command[0], command)


def _unshare() -> list[str]:
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", "--mount", "--propagation", "private", *user]


class Disk:
    """A file system with `size` bytes, mounted at a folder. Needs `enter` first."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        self.size = size
        self._mount("-t", "tmpfs", "-o", f"size={size},mode=0700", "tailgate-soak")

    def used(self) -> int:
        status = os.statvfs(self.folder)
        return (status.f_blocks - status.f_bfree) * status.f_frsize

    def fill(self) -> None:
        """Shrinks the file system to its used size, so that every write fails."""
        for _ in range(20):  # concurrent writes may make the new size too small
            try:
                self._mount("-o", f"remount,size={max(self.used(), PAGE)}")
                return
            except subprocess.CalledProcessError:
                continue
        raise OSError(f"{self.folder} could not be made full")

    def empty(self) -> None:
        """Restores the size."""
        self._mount("-o", f"remount,size={self.size}")

    def _mount(self, *words: str) -> None:
        subprocess.run(["mount", *words, str(self.folder)], check=True, capture_output=True, timeout=COMMAND_TIMEOUT_S)
