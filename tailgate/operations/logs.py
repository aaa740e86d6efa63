"""The log of a process on standard error: text, or one JSON object per event.

    {"time": "2026-11-23T03:10:00.123Z", "level": "warning", "process": "engine", "pid": 7, "logger": "tailgate.engine",
     "message": "…", "sqlstate": "53100", "error": ["OSError", "tailgate/lake/host/files.py:31 replace", …], "repeated": 12}

An event may have more fields: `epoch`, `entry`, `relation`, `role`. As JSON, an exception is its type and the lines of its
traceback, without its text, because that may quote a row. Repetitions of an event are counted (`Counted`).
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal, TextIO

from tailgate.lake.errors import TailgateError

Form = Literal["text", "json"]
FORMS: tuple[Form, ...] = ("text", "json")
TEXT = "%(asctime)s %(name)s %(levelname)s %(message)s"
FIELDS = ("epoch", "entry", "relation", "role", "sqlstate")  # optional fields of an event, set by `extra` of a logger's call
REPEAT_S = 10.0
EVENTS_MAX = 1_000  # different events whose repetitions are counted; further ones are all written
FRAMES_MAX = 20  # lines of a traceback, the innermost ones
ROOT = Path(__file__).parents[2]


def configure(form: Form, process: str) -> None:
    """Writes the log of this process to standard error, unless logging is configured already, as in tests."""
    logging.basicConfig(level=logging.WARNING, handlers=[_handler(form, process)])
    logging.getLogger("tailgate").setLevel(logging.INFO)


def change(form: Form, process: str) -> None:
    """Changes the form of the log, if `configure` has configured it."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler.formatter, JsonFormatter | TextFormatter)]:
        root.addHandler(_handler(form, process))
        root.removeHandler(handler)
        handler.close()


def _handler(form: Form, process: str) -> logging.Handler:
    handler = Counted(sys.stderr) if form == "json" else logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(process) if form == "json" else TextFormatter(TEXT))
    return handler


class TextFormatter(logging.Formatter):
    """Writes an event as text."""


class JsonFormatter(logging.Formatter):
    """Writes an event as a JSON object on one line."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        event: dict[str, object] = {"time": moment, "level": record.levelname.lower(), "process": self._process, "pid": os.getpid()}
        event |= {"logger": record.name, "message": record.getMessage()}
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, TailgateError):
            event["sqlstate"] = error.sqlstate
        event |= {name: value for name in FIELDS if (value := getattr(record, name, None)) is not None}
        if error is not None:
            event["error"] = _error(error)
        if repeated := getattr(record, "repeated", 0):
            event["repeated"] = repeated
        return json.dumps(event, ensure_ascii=False, default=str)


class Counted(logging.StreamHandler[TextIO]):
    """Writes an event at once, and counts its repetitions in the next REPEAT_S seconds.

    They are written as one line, with their number, when an event follows after that time or the process ends.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._events: dict[tuple[str, int, str], Event] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Writes or counts an event. The caller holds the handler's lock."""
        now = time.monotonic()
        self._write_repetitions(now - REPEAT_S)
        key = record.name, record.levelno, record.getMessage()
        event = self._events.get(key)
        if event is not None:
            event.last, event.repeated = record, event.repeated + 1
            return
        if len(self._events) < EVENTS_MAX:
            self._events[key] = Event(now, record)
        super().emit(record)

    def close(self) -> None:
        with self.lock or threading.RLock():
            self._write_repetitions(float("inf"))
        super().close()

    def _write_repetitions(self, before: float) -> None:
        """Writes the repetitions of events that were first written before a time, and forgets these events."""
        for key, event in [(key, event) for key, event in self._events.items() if event.written_at < before]:
            del self._events[key]
            if event.repeated:
                event.last.repeated = event.repeated
                super().emit(event.last)


@dataclass
class Event:
    """An event that was written, and its repetitions since. `last`: the newest of them."""

    written_at: float
    last: logging.LogRecord
    repeated: int = 0


def _error(error: BaseException) -> list[str]:
    """Returns the type of an exception, and the lines of its traceback, outermost first."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES_MAX:]
    return [type(error).__name__, *(f"{_place(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames)]


def _place(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
