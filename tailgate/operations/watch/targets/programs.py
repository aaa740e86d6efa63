"""Programs that receive notifications: NOTIFY COMMAND of CREATE ALERT.

A program is a file below `--secrets-dir` that may be executed, and `--alert-commands` must allow programs. It gets the notification in
the plain form of webhooks on standard input, and nothing of the environment but PATH. Exit code 0 means that it accepts the notification.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tailgate.operations.watch import payloads
from tailgate.operations.watch.alerts import Notification

PROGRAM_S = 10.0  # then the program is killed and called again later, as a webhook that does not answer
PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class Program:
    """A program of an alert. `folder`: the only folder whose programs may be executed, None if programs are not allowed."""

    path: str
    folder: Path | None
    lake: str
    accepts: Callable[[Notification], bool]
    owner: str

    @property
    def name(self) -> str:
        return hashlib.sha256("\n".join((self.owner, "command", self.path)).encode()).hexdigest()[:16]

    def wants(self, notification: Notification) -> bool:
        return self.accepts(notification)

    def send(self, notification: Notification) -> str | None:
        """Executes the program. Returns why it has not accepted the notification, or None."""
        if self.folder is None:
            return "NOTIFY COMMAND needs --alert-commands and --secrets-dir"
        folder = self.folder.resolve()
        program = (folder / self.path).resolve()
        if folder not in program.parents:
            return f'program "{self.path}" is not below --secrets-dir'
        try:
            return _executed(program, payloads.body(notification, "plain", self.lake))
        except OSError as error:
            return f'program "{self.path}" cannot be executed: {error.strerror}'

    def close(self) -> None:
        pass


def _executed(program: Path, data: bytes) -> str | None:
    """Executes a program with its input, in its own process group, so that its children end with it. Raises OSError."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        [str(program)],
        stdin=subprocess.PIPE,
        stdout=quiet,
        stderr=quiet,
        cwd=program.parent,
        env={"PATH": PATH},
        start_new_session=True,
    ) as process:
        try:
            process.communicate(data, PROGRAM_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return f"the program did not end within {PROGRAM_S:g} s"
    return None if process.returncode == 0 else f"exit code {process.returncode}"
