"""Recognizes the failures of ticks by their causes."""

from __future__ import annotations

import errno
import os
from typing import Any

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def caused(failure: BaseException, java: str) -> Any:
    """Returns the exception of this Java class among the causes of a failure, or None."""
    thrown = _exception(failure)
    while thrown is not None and thrown.getClass().getName() != java:
        thrown = thrown.getCause()
    return thrown


def disk_full(failure: BaseException) -> bool:
    """Returns whether there was no space for a file, written by Python or by Spark."""
    if isinstance(failure, OSError):
        return failure.errno in DISK_FULL
    thrown = _exception(failure)
    while thrown is not None:
        if any(os.strerror(number) in str(thrown.getMessage()) for number in DISK_FULL):
            return True
        thrown = thrown.getCause()
    return False


def state_lost(failure: BaseException) -> bool:
    """Returns whether state that the log names is missing or damaged. State that has no space to be opened is neither."""
    return caused(failure, "tailgate.state.StateLost") is not None and not disk_full(failure)


def _exception(failure: BaseException) -> Any:
    """Returns the exception of the JVM that a failure stands for, or None."""
    return getattr(failure, "java_exception", None)
