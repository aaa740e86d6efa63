"""The settings of a running process: they are published for gateways, and read again after SIGHUP.

    start    ──► processes/<command>.<pid>.json: values and origins, for pg_settings ──► removed at the end
    SIGHUP   ──► the flags, variables and files are read again ──┬─► settings that can change: applied
                                                                 └─► others: logged, and "pending restart"

A process that cannot publish its settings logs a warning and runs.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from tailgate.lake.errors import TailgateError
from tailgate.operations.settings.configuration import CHANGEABLE, Command, Value
from tailgate.operations.settings.quantities import Positive, Quantity

if TYPE_CHECKING:
    from tailgate.lake.store import Store

FOLDER = "processes"
PROCESSES = ("engine", "gateway", "sinks", "watch")  # the commands whose processes handle SIGHUP
Kind = Literal["bool", "integer", "real", "enum", "string"]

log = logging.getLogger("tailgate.settings")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a process, as pg_settings has it. `name`: with the command, as in SQL: `gateway.http_rate`.

    `unit`, `low` and `high`: of a quantity, else empty.
    """

    name: str
    value: str
    kind: Kind
    about: str
    choices: tuple[str, ...]
    default: str
    origin: str
    changeable: bool
    pending: bool  # the configuration has another value, which a restart applies
    unit: str = ""
    low: str = ""
    high: str = ""
    shown: str = ""  # the value as SHOW has it, with its unit


class ProcessSettings:
    """The settings of this process. `read` parses its flags, variables and files again; `commands` has those of all processes."""

    def __init__(self, command: str, values: Sequence[Value], read: Callable[[], Sequence[Value]], commands: Mapping[str, Command]) -> None:
        self.command, self.commands = command, commands
        self._values = {value.name: value for value in values}
        self._pending: frozenset[str] = frozenset()
        self._read = read
        self._applying: dict[str, Callable[[Any], None]] = {}
        self._store: Store | None = None  # in which the settings are published
        self._lock = threading.Lock()  # one reload at a time

    def on_change(self, name: str, apply: Callable[[Any], None]) -> None:
        """Sets the function that applies a new value of a setting. It runs on another thread."""
        assert name in CHANGEABLE, name
        self._applying[name] = apply

    def listen(self) -> None:
        """Reads the settings again whenever this process receives SIGHUP. Only the main thread may call this."""
        signal.signal(signal.SIGHUP, lambda *_: threading.Thread(target=self.reload, name="settings", daemon=True).start())

    def reload(self) -> None:
        """Reads the settings again, and applies those that can change. If the configuration has an error, logs it and keeps all values."""
        with self._lock:
            try:
                values = self._read()
            except TailgateError as error:
                log.error("the settings were not changed: %s", error)
                return
            pending = set()
            for value in values:
                old = self._values[value.name]
                if value.value == old.value or self._apply(value):
                    self._values[value.name] = value
                else:
                    pending.add(value.name)
                    if value.name not in self._pending:
                        log.warning('parameter "%s" cannot be changed without restarting the process', self._sql_name(value.name))
            self._pending = frozenset(pending)
            if self._store is not None:
                self._write(self._store)
            log.info("the settings were read again")

    def _apply(self, value: Value) -> bool:
        """Applies a changed value. Returns False if the process must be restarted for it."""
        apply = self._applying.get(value.name)
        if apply is None:
            return False
        try:
            apply(value.value)
        except TailgateError as error:
            log.error('parameter "%s" was not changed: %s', self._sql_name(value.name), error)
            return False
        log.info('parameter "%s" changed to "%s"', self._sql_name(value.name), _text(value.shown))
        return True

    def rows(self) -> list[Setting]:
        """Returns the settings, in the order of the options."""
        settings = self.commands[self.command].settings
        return [self._setting(settings[name], value) for name, value in self._values.items()]

    def _setting(self, action: argparse.Action, value: Value) -> Setting:
        default = _text(Value(value.name, action.default, "").shown)
        name, choices = self._sql_name(value.name), tuple(map(str, action.choices or ()))
        changeable, pending = value.name in self._applying, value.name in self._pending
        text, quantity = _text(value.shown), action.type
        setting = Setting(name, text, kind(action), action.help or "", choices, default, value.origin, changeable, pending, shown=text)
        if not isinstance(quantity, Quantity):
            return setting
        low, high, number = str(quantity.low), str(quantity.high), _text(value.value)
        return replace(setting, value=number, default=_text(action.default), unit=quantity.unit, low=low, high=high)

    def _sql_name(self, name: str) -> str:
        return sql_name(self.command, name)

    # --- other processes

    def publish(self, store: Store) -> None:
        """Writes the settings into the lake, and removes those of processes that have ended."""
        published(store)
        self._store = store
        self._write(store)

    def withdraw(self) -> None:
        """Removes the published settings, at the end of the process."""
        if self._store is not None:
            self._store.discard([self._name])
            self._store = None

    @property
    def _name(self) -> str:
        return f"{FOLDER}/{self.command}.{os.getpid()}.json"

    def _write(self, store: Store) -> None:
        from tailgate.lake.store import announcements, documents  # import Arrow, which would delay the start of the engine's JVM

        process = {**announcements.of_this_process(), "command": self.command}
        try:
            documents.write(store, self._name, {**process, "settings": [asdict(row) for row in self.rows()]})
        except OSError as error:
            log.warning("the settings of this process are not published: %s", error)


@dataclass(frozen=True, slots=True)
class Published:
    """A process of this machine that has published its settings."""

    command: str
    pid: int
    settings: tuple[Setting, ...]

    def reload(self) -> bool:
        """Sends SIGHUP. Returns False if this process may not, or the other one has ended."""
        try:
            os.kill(self.pid, signal.SIGHUP)
        except OSError:
            return False
        return True


def published(store: Store) -> list[Published]:
    """Returns the running processes of this machine that have published their settings. Removes the files of those that have ended."""
    from tailgate.lake.store import announcements

    result: list[Published] = []
    for _, content in announcements.running(store, FOLDER):
        settings = tuple(Setting(**{**row, "choices": tuple(row["choices"])}) for row in content["settings"])
        result.append(Published(content["command"], content["pid"], settings))
    return result


def sql_name(command: str, name: str) -> str:
    """Returns the name of a setting in SQL.

    >>> sql_name("gateway", "http-rate")
    'gateway.http_rate'
    """
    return f"{command}.{name.replace('-', '_')}"


def kind(action: argparse.Action) -> Kind:
    """Returns the type of a setting, as pg_settings has it."""
    if action.nargs == 0:
        return "bool"
    if action.choices is not None:
        return "enum"
    if action.type is int or isinstance(action.type, Quantity):
        return "integer"
    return "real" if action.type is float or isinstance(action.type, Positive) else "string"


def _text(value: Any) -> str:
    """Returns a value as SHOW prints it.

    >>> _text(True), _text(["a", "b"]), _text(None)
    ('on', 'a, b', '')
    """
    match value:
        case None:
            return ""
        case bool():
            return "on" if value else "off"
        case list():
            return ", ".join(map(str, value))
    return str(value)
