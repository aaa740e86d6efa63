"""Named points at which a test can kill this process, to simulate a crash.

    TAILGATE_CRASH=entry.half:3                SIGKILL when the point `entry.half` is reached the third time (default: the first)
    TAILGATE_CRASH=block.entered,entry.half    SIGKILL at the first `entry.half` after the first `block.entered`

Without the variable a point costs one comparison.
"""

from __future__ import annotations

import os
import signal
import threading

_lock = threading.Lock()  # tables of a round are written by several threads
_steps = os.environ.get("TAILGATE_CRASH", "").split(",")
_name, _left = "", 0


def point(name: str) -> None:
    """Kills the process if the environment names this point, and those before it have been reached."""
    global _left
    if name != _name:
        return
    with _lock:
        if name == _name:  # another thread may have reached the next step
            _left -= 1
            if _left <= 0:
                _next()


def _next() -> None:
    """Continues with the next step of the environment. Kills the process after the last one."""
    global _name, _left
    if not _steps:
        os.kill(os.getpid(), signal.SIGKILL)
    _name, _, count = _steps.pop(0).partition(":")
    _left = int(count or 1)


_next()
