"""A file system for the run alone, which can be made full: tmpfs in a mount namespace of our own.

    unshare ──► this program again, in its namespace ──► mount ──► run ──► the namespace ends with its last process, the mount with it

tmpfs takes its size at any time: made as large as what is used, it is full at once. Nobody else on the machine sees it. Root
may do that; others where the kernel lets users make namespaces.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

INSIDE = "TAILGATE_SOAK_NAMESPACE"  # set in the program that runs in the namespace
COMMAND_TIMEOUT_S = 30.0  # of mount and unshare: milliseconds
PAGE = 4096


def missing() -> str | None:
    """Why there can be no file system of our own here, or None."""
    if INSIDE in os.environ:
        return None
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return "Linux and unshare (util-linux)"
    found = subprocess.run([*_unshare(), "true"], capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S)
    return None if found.returncode == 0 else f"root, or namespaces of users ({found.stderr.strip()})"


def enter(module: str, words: list[str]) -> None:
    """Starts the module again inside a namespace, in place of this process; returns if it is inside already."""
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        command = [*_unshare(), sys.executable, "-m", module, *words]
        os.execvp(command[0], command)


def _unshare() -> list[str]:
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", "--mount", "--propagation", "private", *user]


class Disk:
    """A file system of so many bytes at a folder. Call `enter` before."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        self.size = size
        self._mount("-t", "tmpfs", "-o", f"size={size},mode=0700", "tailgate-soak")

    def used(self) -> int:
        found = os.statvfs(self.folder)
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    def fill(self) -> None:
        """No byte more can be written."""
        for _ in range(20):  # what is written meanwhile may not fit any more
            try:
                self._mount("-o", f"remount,size={max(self.used(), PAGE)}")
                return
            except subprocess.CalledProcessError:
                continue
        raise OSError(f"{self.folder} could not be made full")

    def empty(self) -> None:
        """As large as it was."""
        self._mount("-o", f"remount,size={self.size}")

    def _mount(self, *words: str) -> None:
        subprocess.run(["mount", *words, str(self.folder)], check=True, capture_output=True, timeout=COMMAND_TIMEOUT_S)
