"""The settings of Tailgate's processes, in SHOW, pg_settings and ALTER SYSTEM. Only superusers see them.

    this gateway                    ──┐
    engine, sinks, watch: published ──┴─► gateway.http_rate, engine.heap, …

Names with the prefix of another command belong to sessions, as all custom names do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailgate.gateway.settings.checks import CHECKS, short
from tailgate.gateway.settings.definitions import TABLE, find, near
from tailgate.gateway.settings.definitions import Setting as SessionSetting
from tailgate.lake.errors import CantChangeRuntimeParam, UndefinedObject
from tailgate.lake.store import Store
from tailgate.operations.settings import system
from tailgate.operations.settings.configuration import DEFAULT, FLAG, PREFIX, Command
from tailgate.operations.settings.process import PROCESSES, ProcessSettings, Published, Setting, published

NO_COMMANDS: Mapping[str, Command] = {}


class Processes:
    """The settings of the processes of a lake. `own`: of this gateway, None in tests."""

    def __init__(self, store: Store, own: ProcessSettings | None = None) -> None:
        self._store, self._own = store, own
        self._commands = {name: own.commands[name] for name in PROCESSES} if own is not None else NO_COMMANDS

    def owns(self, name: str) -> bool:
        """Returns whether a name has the form of these settings: the name of a process, a dot, and a name."""
        command, dot, _ = name.partition(".")
        return bool(dot) and command in self._commands

    def has(self, name: str) -> bool:
        """Returns whether a running process has a setting."""
        return self.owns(name) and any(setting.name == name for setting in self.all())

    def find(self, name: str) -> Setting:
        """Returns a setting. Raises 42704 if no running process has it."""
        settings = {setting.name: setting for setting in self.all()}
        if name not in settings:
            raise UndefinedObject(f'unrecognized configuration parameter "{name}"', hint=near(name, settings))
        return settings[name]

    def all(self) -> list[Setting]:
        """Returns the settings of this gateway, and of one other process of each command, in order of their names."""
        settings = {setting.name: setting for process in self._others() for setting in process.settings}
        settings |= {setting.name: setting for setting in (self._own.rows() if self._own is not None else ())}
        return [settings[name] for name in sorted(settings)]

    def rows(self) -> list[dict[str, Any]]:
        """Returns these settings as rows of pg_settings."""
        return [_row(setting) for setting in self.all()]

    def reload(self) -> bool:
        """Makes all processes of this machine read their settings again: pg_reload_conf(). Returns whether all were signaled."""
        return False not in [process.reload() for process in published(self._store)]

    def _others(self) -> list[Published]:
        own = None if self._own is None else self._own.command
        return [process for process in published(self._store) if process.command != own]

    # --- ALTER SYSTEM

    def alter(self, name: str, value: str | None) -> None:
        """Executes ALTER SYSTEM SET, or RESET if `value` is None. Raises 42704, 22023, and 55P02 for a setting that cannot be changed."""
        option = system.option(self._commands, name)
        if option is not None:
            system.change(self._store, self._commands, *option, value)
            return
        setting = find(name)
        if setting is None:
            raise UndefinedObject(f'unrecognized configuration parameter "{name}"', hint=near(name, TABLE))
        if setting.fixed:
            raise CantChangeRuntimeParam(f'parameter "{setting.name}" cannot be changed')
        checked = None if value is None else CHECKS[setting.kind](setting, short(setting.name, value))
        system.change_session_setting(self._store, setting.name, checked)

    def reset_all(self) -> None:
        """Executes ALTER SYSTEM RESET ALL."""
        system.clear(self._store)


def _row(setting: Setting) -> dict[str, Any]:
    command = setting.name.partition(".")[0]
    file, _, line = setting.origin.rpartition(":")
    in_file = line.isdecimal()
    return {
        "name": setting.name,
        "setting": setting.value,
        "unit": setting.unit or None,
        "category": f"Tailgate / {command}",
        "short_desc": setting.about,
        "context": "sighup" if setting.changeable else "postmaster",
        "vartype": setting.kind,
        "source": source(setting.origin),
        "min_val": setting.low or None,
        "max_val": setting.high or None,
        "enumvals": list(setting.choices) or None,
        "boot_val": setting.default,
        "reset_val": setting.value,
        "sourcefile": file if in_file else None,
        "sourceline": int(line) if in_file else None,
        "pending_restart": setting.pending,
    }


def own_row(setting: SessionSetting, value: str) -> dict[str, Any]:
    """Returns a setting of sessions that PostgreSQL lacks as a row of pg_settings."""
    vartype = setting.kind if setting.kind in ("bool", "enum") else "string"
    return {
        "name": setting.name,
        "setting": value,
        "category": "Tailgate / Sessions",
        "short_desc": setting.about,
        "context": "user",
        "vartype": vartype,
        "source": "default" if value == setting.default else "session",
        "enumvals": list(setting.choices) if vartype == "enum" else None,
        "boot_val": setting.default,
        "reset_val": setting.default,
        "pending_restart": False,
    }


def source(origin: str) -> str:
    """Returns the column `source` of pg_settings for the origin of a value.

    >>> source("flag"), source("TAILGATE_LOG"), source("tailgate.toml:3")
    ('command line', 'environment variable', 'configuration file')
    """
    if origin in (DEFAULT, FLAG):
        return {DEFAULT: "default", FLAG: "command line"}[origin]
    return "environment variable" if origin.startswith(PREFIX) else "configuration file"
