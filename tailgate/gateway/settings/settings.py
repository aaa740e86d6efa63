"""A session's settings: the values of SET, SHOW, RESET and the startup message, and those reported to clients.

ROLLBACK undoes a SET inside a block. SET LOCAL lasts until the end of the block.

    start-up, SET ──► check (by kind) ──► values ──► style (for encoding), ParameterStatus (if reported)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from types import MappingProxyType
from typing import Any, cast

from tailgate.gateway.resources.budgets import Charge
from tailgate.gateway.settings.checks import CHECKS, UNITS_MS, short
from tailgate.gateway.settings.definitions import TABLE, Setting, find, known, near
from tailgate.gateway.settings.processes import Processes, own_row
from tailgate.lake.errors import (
    CantChangeRuntimeParam,
    InsufficientPrivilege,
    InvalidParameterValue,
    ProgramLimitExceeded,
    ReadOnlySqlTransaction,
    TailgateError,
    UndefinedObject,
)
from tailgate.operations.settings.process import Setting as ProcessSetting
from tailgate.sql.ksqldb.dialect import Dialect
from tailgate.values.codec.style import Style

NO_DEFAULTS: Mapping[str, str] = MappingProxyType({})
CUSTOM_MAX = 100  # settings with a dot in their name, per session
ROLES = ("role", "session_authorization")  # settings that RESET ALL leaves
MODES = ("isolation", "read_only", "deferrable")  # the initial value of transaction_<mode> is default_transaction_<mode>


@lru_cache(1000)
def milliseconds(shown: str) -> int:
    """Converts a duration in the format of SHOW to ms.

    >>> milliseconds("5s"), milliseconds("0")
    (5000, 0)
    """
    match = re.fullmatch(r"(\d+)(\w*)", shown)
    return round(int(match[1]) * UNITS_MS[match[2] or "ms"]) if match else 0


def checked_defaults(words: Iterable[str]) -> dict[str, str]:
    """Returns the values of settings by their keys, from words NAME=VALUE.

    Raises 22023 for a word of another form, and the errors of SET.
    """
    settings, defaults = Settings(), dict[str, str]()
    for word in words:
        name, equals, value = word.partition("=")
        name = name.strip()
        setting = find(name)
        if not equals:
            raise InvalidParameterValue(f"--set {word} is not NAME=VALUE")
        if setting is None:
            raise UndefinedObject(f'unrecognized configuration parameter "{name}"')
        defaults[setting.name.lower()] = settings.set(name, value.strip())
    return defaults


def _is_mode(key: str) -> bool:
    """Returns whether a setting is a mode of the transaction, which ends with it."""
    return key.removeprefix("transaction_") in MODES


Mark = tuple[dict[str, str], dict[str, str]]


class Settings:
    """The settings of one session. `defaults`: values other than PostgreSQL's with which it begins (`checked_defaults`).

    `changed`: a reported setting may have changed since `unreported`. `charged`: counts the memory of custom settings.
    """

    def __init__(self, defaults: Mapping[str, str] = NO_DEFAULTS) -> None:
        self._values = {key: row.default for key, row in TABLE.items()}
        self._before: dict[str, str] | None = None  # values at the beginning of the block
        self._modes: dict[str, str] = {}  # of the last transaction
        self._local: dict[str, str] = {}  # values that SET LOCAL has replaced, restored at the end of the block
        self.changed = False
        self.charged: Charge | None = None
        self._marked: Mark | None = None
        self.style = Style()
        self.processes: Processes | None = None  # for the settings of processes, which sessions cannot change
        self.superuser: Callable[[], bool] = lambda: True  # whether the current role is a superuser
        self.check_role: Callable[[str, str], None] = lambda key, name: None  # raises an error for a role that may not be set
        # raises 25001 if the transaction cannot change a mode to this value any more: name, value, new value
        self.check_mode: Callable[[str, str, str], None] = lambda key, before, value: None
        self.logs = False  # log_statement or log_min_duration_statement is on
        self.log_duration_ms = -1
        self.reads_now = True  # no setting determines the time: cached results may be used
        for key, value in defaults.items():
            self._put(key, value)
        self._reset = dict(self._values)
        self._reported: dict[str, str] = {}  # the reported settings that the client last received

    def start(self, startup: Mapping[str, str]) -> None:
        """Takes the values of the startup message, to which RESET returns. Raises 42704 for unknown names."""
        for name, value in startup.items():
            self.set(name, value)
        self._reset = dict(self._values)
        self.changed = False

    def check(self, name: str, value: str | None) -> str:
        """Returns the name of a setting in PostgreSQL's spelling, without a change.

        Raises the errors of SET or, without a value, of RESET.
        """
        trial = Settings()
        trial.processes, trial.superuser, trial.check_role = self.processes, self.superuser, self.check_role
        if value is None:
            trial.reset(name)
        else:
            trial.set(name, value)
        return trial.get(name)[0]

    def fix(self, name: str, value: str) -> None:
        """Sets a value that the server determines, such as the user's name."""
        self._values[name] = self._reset[name] = value

    def get(self, name: str) -> tuple[str, str]:
        """Returns the name in PostgreSQL's spelling and the value. Raises 42704 if there is no such setting."""
        if (process := self._process(name)) is not None:
            return process.name, process.shown
        setting = find(name)
        key = setting.name.lower() if setting else name.lower()
        if key not in self._values:
            raise UndefinedObject(f'unrecognized configuration parameter "{name}"', hint=near(name, TABLE))
        return (setting.name if setting else key), self._values[key]

    def has(self, name: str) -> bool:
        """Returns whether `get` has a value for this name. Unlike an error of `get`, this does not look for similar names."""
        key = name.lower()
        return known(name) is not None or key in self._values or (self.processes is not None and self.processes.has(key))

    def _process(self, name: str) -> ProcessSetting | None:
        """Returns the setting of a process, or None for a name of another form. Raises 42704 if there is none, 42501 for ordinary roles."""
        if self.processes is None or not self.processes.owns(name.lower()):
            return None
        setting = self.processes.find(name.lower())
        if not self.superuser():
            raise InsufficientPrivilege(f'must be superuser or have privileges of pg_read_all_settings to examine "{setting.name}"')
        return setting

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def find(self, key: str) -> str | None:
        """Returns the value of a custom setting, or None if it is not set."""
        return self._values.get(key)

    def set(self, name: str, value: str, *, local: bool = False, trusted: bool = False) -> str:
        """Sets a value and returns it in the format of SHOW.

        `local`: until the end of the block. `trusted`: the privilege was checked before: ALTER ROLE, ALTER DATABASE.
        """
        self._marked = None
        if (process := self._process(name)) is not None:
            how = "now" if process.changeable else "without restarting the server"
            raise CantChangeRuntimeParam(f'parameter "{process.name}" cannot be changed {how}')
        setting = find(name)
        key = setting.name.lower() if setting else name.lower()
        if setting is not None:
            if setting.fixed:
                raise CantChangeRuntimeParam(f'parameter "{setting.name}" cannot be changed')
            if not trusted:
                self._check_privilege(setting)
            value = CHECKS[setting.kind](setting, short(setting.name, value))
            if key in ROLES:
                self.check_role(key, value)
        else:
            self._check_custom(key, value)
        if _is_mode(key):
            if self._before is None:
                return value  # the transaction ends with the statement
            self.check_mode(key, self._values[key], value)
        self._change(key, value, local=local)
        return value

    def reset(self, name: str | None, *, local: bool = False) -> None:
        """Resets one setting, or all if `name` is None: RESET and SET … TO DEFAULT."""
        self._marked = None
        if name is None:
            for key in list(self._values):
                if key not in (*ROLES, "is_superuser") and not _is_mode(key):  # as in PostgreSQL, the modes of the transaction stay
                    self._local.pop(key, None)
                    self._put(key, self._reset.get(key, ""))
            return
        setting = find(name)
        key = setting.name.lower() if setting else name.lower()
        if setting is not None and setting.fixed:
            raise CantChangeRuntimeParam(f'parameter "{setting.name}" cannot be changed')
        if setting is None:
            self._check_custom(key, "")
        else:
            self._check_privilege(setting)
        if _is_mode(key):
            if self._before is None:
                return
            self.check_mode(key, self._values[key], self._reset[key])
        self._change(key, self._reset.get(key, ""), local=local)

    def _change(self, key: str, value: str, *, local: bool) -> None:
        """Changes a value, if `local` until the end of the block. Another session user also ends SET ROLE."""
        if local:
            self._local.setdefault(key, self._values.get(key, ""))
        else:
            self._local.pop(key, None)
        self._put(key, value)
        if key == "session_authorization":
            self._put("role", "none")

    def _check_custom(self, key: str, value: str) -> None:
        """Raises 22023 for a custom setting that is too long, 54000 if the session has too many others."""
        short(key, value)
        if key not in self._values and sum("." in existing and existing not in TABLE for existing in self._values) >= CUSTOM_MAX:
            raise ProgramLimitExceeded(f"a session can have at most {CUSTOM_MAX} settings of its own")

    def _check_privilege(self, setting: Setting) -> None:
        if setting.superuser and not self.superuser():
            raise InsufficientPrivilege(f'permission denied to set parameter "{setting.name}"')

    @property
    def as_of(self) -> int | None:
        """Returns the time of tailgate.as_of in ms since the epoch, or None if queries read at the newest time."""
        value = self._values["tailgate.as_of"]
        return int(value) if value else None

    @property
    def dialect(self) -> Dialect:
        """Returns the dialect of statements."""
        return cast(Dialect, self._values["tailgate.dialect"])

    @property
    def fires_triggers(self) -> bool:
        """Returns whether writes check foreign keys and carry out their actions, which are triggers in PostgreSQL."""
        return self._values["session_replication_role"] != "replica"

    def check_writable(self, command: str) -> None:
        """Raises 25006 in a read-only transaction, also of a single statement. `command`: the name of the statement in the message."""
        if self._values["transaction_read_only"] == "on":
            raise ReadOnlySqlTransaction(f"cannot execute {command} in a read-only transaction")

    def begin(self, *, chain: bool = False) -> None:
        """Begins a transaction: keeps the settings for ROLLBACK. A block continues the implicit transaction before it.

        With `chain`, it has the modes of the transaction that has ended: COMMIT AND CHAIN.
        """
        if self._before is None:
            self._before = dict(self._values)
        if chain:
            for key, value in self._modes.items():
                self._put(key, value)

    def mark(self) -> Mark:
        """Returns a copy of the settings at a savepoint, for `back`. Returns the same object while nothing changes."""
        if self._marked is None:
            self._marked = dict(self._values), dict(self._local)
        return self._marked

    def back(self, mark: Mark) -> None:
        """Restores the settings from `mark`, at ROLLBACK TO."""
        values, local = mark
        self._local = dict(local)
        self._restore(values)

    def end(self, *, undo: bool) -> None:
        """Ends a transaction: undoes each SET LOCAL, and with `undo` every change of the transaction."""
        self._marked = None
        if self._before is not None:
            self._modes = {key: self._values[key] for key in (f"transaction_{mode}" for mode in MODES)}
        local, before = self._local, self._before
        self._local, self._before = {}, None
        if undo and before is not None:
            self._restore(before)
        else:
            for key, value in local.items():
                self._put(key, value)
        for mode in MODES:
            self._put(f"transaction_{mode}", self._values[f"default_transaction_{mode}"])

    def _restore(self, values: Mapping[str, str]) -> None:
        """Restores earlier values. As in PostgreSQL, a setting that was not set then is empty."""
        for key in list(self._values):
            self._put(key, values.get(key, ""))

    def all(self) -> Iterator[tuple[str, str, str]]:
        """Yields (name, value, description) of each setting, for SHOW ALL. Only superusers see those of processes."""
        for key, row in sorted(TABLE.items()):
            yield row.name, self._values[key], row.about
        if self.processes is not None and self.superuser():
            for setting in self.processes.all():
                yield setting.name, setting.shown, setting.about

    def own_rows(self) -> list[dict[str, Any]]:
        """Returns the settings of sessions that PostgreSQL lacks, as rows of pg_settings."""
        return [own_row(row, self._values[key]) for key, row in sorted(TABLE.items()) if row.own]

    def unreported(self) -> list[tuple[str, str]]:
        """Returns the settings that clients are informed about (ParameterStatus) and that have changed since the last call."""
        values = {row.name: self._values[key] for key, row in TABLE.items() if row.reported}
        changes = [(name, value) for name, value in values.items() if self._reported.get(name) != value]
        self._reported, self.changed = values, False
        return changes

    def _put(self, key: str, value: str) -> None:
        before = self._values.get(key)
        if before == value:
            return
        if self.charged is not None and key not in TABLE:
            self.charged.add(len(value) - len(before or ""))
        self._values[key] = value
        self._marked = None
        if self._before is None and key.removeprefix("default_transaction_") in MODES:
            self._values[key.removeprefix("default_")] = value  # applies to the next transaction
        row = TABLE.get(key)
        if row is not None and row.reported:
            self.changed = True
        if key in ROLES:
            with suppress(TailgateError):  # the role was dropped
                self._put("is_superuser", "on" if self.superuser() else "off")
        if key in ("tailgate.as_of", "real_time_recency"):
            self.reads_now = not self._values["tailgate.as_of"] and self._values["real_time_recency"] == "off"
        if key in ("log_statement", "log_min_duration_statement"):
            duration = self._values["log_min_duration_statement"]
            self.log_duration_ms = -1 if duration == "-1" else milliseconds(duration)
            self.logs = self.log_duration_ms >= 0 or self._values["log_statement"] != "none"
        if key in ("timezone", "intervalstyle", "extra_float_digits", "bytea_output", "datestyle"):
            v = self._values
            order = v["datestyle"].removeprefix("ISO, ")
            self.style = Style(v["timezone"], v["intervalstyle"], int(v["extra_float_digits"]), v["bytea_output"], order)
