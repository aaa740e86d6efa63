"""The settings of ALTER SYSTEM: the file `tailgate.auto.toml` of the data folder.

Processes read it when they start and after SIGHUP (`settings.process`). It takes precedence over tailgate.toml.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tailgate.lake.errors import CantChangeRuntimeParam, UndefinedObject
from tailgate.lake.store import Store
from tailgate.operations.settings.configuration import CHANGEABLE, JOINED, SYSTEM_FILE, Command, converted, nearest, parsed
from tailgate.operations.settings.process import sql_name

HEAD = "# Written by ALTER SYSTEM, which overwrites changes by hand.\n"
GATEWAY = "gateway"  # the command whose `set` has the settings of sessions

Tables = dict[str, dict[str, Any]]


def option(commands: Mapping[str, Command], name: str) -> tuple[str, str] | None:
    """Returns the command and the option of a setting's name in SQL, or None if no command has this prefix.

    Raises 42704 for a name that the command does not have, and 55P02 for a setting that ALTER SYSTEM may not change.
    """
    command, dot, rest = name.partition(".")
    if not dot or command not in commands:
        return None
    key = rest.replace("_", "-")
    if key not in commands[command].settings or key == JOINED:
        names = [sql_name(command, each) for each in commands[command].settings]
        raise UndefinedObject(f'unrecognized configuration parameter "{name}"', hint=nearest(name, names))
    if key not in CHANGEABLE:
        raise CantChangeRuntimeParam(f'parameter "{name}" cannot be changed', hint=f"Set {key} in tailgate.toml, and restart the process.")
    return command, key


def change(store: Store, commands: Mapping[str, Command], command: str, key: str, value: str | None) -> None:
    """Sets an option of a command, or removes it if `value` is None. Raises 22023."""
    checked = None if value is None else converted(commands[command].settings[key], value, f'parameter "{sql_name(command, key)}"')

    def changed(tables: Tables) -> None:
        table = tables.setdefault(command, {})
        if checked is None:
            table.pop(key, None)
        else:
            table[key] = checked

    _rewrite(store, changed)


def change_session_setting(store: Store, name: str, value: str | None) -> None:
    """Sets the value of a setting with which sessions begin, or removes it. The caller has checked it."""

    def changed(tables: Tables) -> None:
        table = tables.setdefault(GATEWAY, {})
        others = [word for word in table.get(JOINED, ()) if word.partition("=")[0] != name]
        table[JOINED] = others if value is None else [*others, f"{name}={value}"]

    _rewrite(store, changed)


def clear(store: Store) -> None:
    """Removes all settings: ALTER SYSTEM RESET ALL."""
    _rewrite(store, Tables.clear)


def _rewrite(store: Store, changed: Callable[[Tables], None]) -> None:
    """Replaces the file. Several processes may call this; the change is repeated if another one was faster."""
    replaced = False
    while not replaced:
        try:
            content, version = store.get_version(SYSTEM_FILE)
        except FileNotFoundError:
            content, version = b"", ""
        tables: Tables = {name: dict(table) for name, table in parsed(content.decode(), Path(SYSTEM_FILE)).tables.items()}
        changed(tables)
        after = HEAD + text({name: table for name, table in tables.items() if table})
        replaced = store.replace(SYSTEM_FILE, after.encode(), version or None)


def text(tables: Mapping[str, Mapping[str, Any]]) -> str:
    r"""Returns tables as TOML.

    >>> print(text({"gateway": {"http-rate": 10.0, "set": ['application_name="\n'], "http-log": True}}))
    <BLANKLINE>
    [gateway]
    http-rate = 10.0
    set = ["application_name=\"\n"]
    http-log = true
    <BLANKLINE>
    """
    lines = []
    for name, table in sorted(tables.items()):
        lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    return "".join(f"{line}\n" for line in lines)


def _toml(value: Any) -> str:
    """Returns a value as TOML: as JSON, whose escapes of strings are those of TOML."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
