"""The settings of a command: flags, then variables of the environment, then ALTER SYSTEM, then a file, then defaults.

    tailgate gateway --memory 2GB   >   TAILGATE_MEMORY=2GB   >   <data>/tailgate.auto.toml   >   tailgate.toml   >   the default
                                                                  written by ALTER SYSTEM         [gateway]
                                                                                                  memory = "2GB"

The options of the command line define the settings, so they have one name, one type and one check. In a file, a key before the first
table holds for all commands that have this option; a key in the table of a command holds for it, and takes precedence. The lists of
`set` are joined: each of their elements is a setting.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tailgate.lake.errors import InvalidParameterValue
from tailgate.lake.store import locations
from tailgate.operations.data_folder import Location, use_credentials
from tailgate.operations.settings.quantities import InvalidValue, Quantity

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

FILE = "tailgate.toml"  # in the current folder, unless --config or TAILGATE_CONFIG names another
SYSTEM_FILE = "tailgate.auto.toml"  # in the data folder, written by ALTER SYSTEM (`settings.system`)
PREFIX = "TAILGATE_"
# Options of a single call. They are not settings: a value that stays, such as a take-over at each start, would do harm.
NOT_SETTINGS = frozenset({"help", "config", "json", "count", "check", "for", "take-over", "hand-over", "to", "from", "list", "at", "logs"})
# The settings that SIGHUP changes in a process that runs.
CHANGEABLE = frozenset(
    {"set", "log", "http-rate", "http-origin", "http-streams", "http-log", "webhook", "webhook-format", "held-log", "history"}
)
SUPERVISORS = frozenset({"up", "demo"})  # their child processes apply the changes
JOINED = "set"
TRUE, FALSE = ("true", "on", "yes", "1"), ("false", "off", "no", "0")
SIMILAR = 0.6  # how similar a name must be to be in a hint
VERY_SIMILAR = 0.8  # the same for variables, which may belong to other programs
PASSWORD = re.compile(r"(?<=://)([^/@:]*):([^/@]*)@")
MASK = "********"
DEFAULT, FLAG = "default", "flag"


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a setting, and where it comes from: a flag, a variable, a line of a file, or the default.

    `inherited`: a child process gets the same value from the same place.
    """

    name: str
    value: Any
    origin: str
    inherited: bool = field(default=False, compare=False)
    quantity: Quantity | None = field(default=None, compare=False)

    @property
    def shown(self) -> Any:
        """Returns the value as JSON has it, without passwords.

        >>> Value("schema-registry", "http://ann:x@host:8081", "flag").shown
        'http://ann:********@host:8081'
        """
        if self.quantity is not None and self.quantity.unit and self.value is not None:
            return self.quantity.shown(self.value)
        match self.value:
            case None | bool() | int() | float():
                return self.value
            case list():
                return [_masked(str(element)) for element in self.value]
        return _masked(str(self.value))


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration file. `lines`: the line of each key, by table and key."""

    path: Path
    tables: Mapping[str, Mapping[str, Any]]  # the keys before the first table are in the table ""
    lines: Mapping[tuple[str, str], int]

    def position(self, table: str, key: str) -> str:
        """Returns where a key is, as compilers write it: file and line."""
        return f"{self.path}:{self.lines.get((table, key), 1)}"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the command line, and its options that are settings, by name."""

    name: str
    settings: Mapping[str, argparse.Action]


def commands(parser: argparse.ArgumentParser) -> list[Command]:
    """Returns the commands of a parser, also those below a command (`log ls`)."""
    return [Command(name, _settings(command)) for name, command in _parsers(parser)]


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str] | None, environment: Mapping[str, str]) -> argparse.Namespace:
    """Returns the options of a command line, with the values of the environment and of the file.

    `values` has their origins, and `commands` the commands of the parser by name.

    Raises 22023 with the position of a key that is unknown or has a value that cannot be used.
    """
    by_name = {command.name: command for command in commands(parser)}
    actions = [action for command in by_name.values() for action in command.settings.values()]
    defaults = [action.default for action in actions]
    for action in actions:
        action.default = argparse.SUPPRESS  # the namespace has flags only
    try:
        options = parser.parse_args(arguments)
    finally:
        for action, default in zip(actions, defaults, strict=True):
            action.default = default
    file = _file(getattr(options, "config", None), environment, by_name)
    files = () if file is None else (file,)
    settings = by_name[options.command].settings
    if "data" in settings:
        data = _value(options, "data", settings["data"], environment, files).value
        use_credentials(data, _value(options, "secrets-dir", settings["secrets-dir"], environment, files).value)  # before the first request
        system = system_file(data, by_name)
        files = files if system is None else (system, *files)
    options.values, options.commands = [], by_name
    for name, action in settings.items():
        value = _value(options, name, action, environment, files)
        options.values.append(replace(value, quantity=action.type) if isinstance(action.type, Quantity) else value)
    for value in options.values:
        setattr(options, settings[value.name].dest, value.value)
    return options


def system_file(data: Location | None, by_name: Mapping[str, Command]) -> Configuration | None:
    """Returns the file of ALTER SYSTEM in a lake, or None if there is none. Raises 22023 as for the configuration file."""
    if data is None:
        return None
    try:
        text = bytes(locations.opened(data).get(SYSTEM_FILE)).decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    file = parsed(text, data / SYSTEM_FILE if isinstance(data, Path) else Path(SYSTEM_FILE))
    _check(file, by_name)
    return file


def for_children(options: argparse.Namespace) -> argparse.Namespace:
    """Returns the options of a supervisor without those that its child processes read themselves, so that SIGHUP can change them."""
    inherited = [value.name.replace("-", "_") for value in options.values if value.inherited]
    absent: dict[str, Any] = {name: [] if isinstance(getattr(options, name), list) else None for name in inherited}
    return argparse.Namespace(**{**vars(options), **absent})


def unknown(environment: Mapping[str, str], parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Yields the variables of the environment that look like settings but are not, each with the nearest setting."""
    names = {variable(name).removeprefix(PREFIX) for command in commands(parser) for name in (*command.settings, "config")}
    for name in sorted(environment):
        word = name.removeprefix(PREFIX)
        if word not in (name, *names) and (near := difflib.get_close_matches(word, names, 1, VERY_SIMILAR)):
            yield name, PREFIX + near[0]


def variable(name: str) -> str:
    """Returns the variable of a setting.

    >>> variable("tls-cert")
    'TAILGATE_TLS_CERT'
    """
    return PREFIX + name.replace("-", "_").upper()


def _value(
    options: argparse.Namespace,
    name: str,
    action: argparse.Action,
    environment: Mapping[str, str],
    files: Sequence[Configuration],
) -> Value:
    values = list(_values(options, name, action, environment, files))
    if not values:
        return Value(name, action.default, DEFAULT, inherited=True)
    if options.command in SUPERVISORS:  # child processes add the values that they inherit
        values = [value for value in values if not value.inherited] or values
    if name == JOINED and len(values) > 1:
        elements = [element for value in reversed(values) for element in value.value]
        return Value(name, elements, ", ".join(value.origin for value in values))
    return values[0]


def _values(
    options: argparse.Namespace, name: str, action: argparse.Action, environment: Mapping[str, str], files: Sequence[Configuration]
) -> Iterator[Value]:
    """Yields the values of all places that have the setting, the one that takes precedence first."""
    if hasattr(options, action.dest):
        yield Value(name, getattr(options, action.dest), FLAG)
    if (text := environment.get(variable(name))) is not None:
        yield Value(name, converted(action, text, variable(name)), variable(name), inherited=True)
    for file in files:
        table = next((table for table in (options.command, "") if name in file.tables.get(table, {})), None)
        if table is not None:
            position = file.position(table, name)
            yield Value(name, converted(action, file.tables[table][name], position), position, inherited=not table)


def converted(action: argparse.Action, value: Any, origin: str) -> Any:
    """Returns the value of an option from text, or from a value of TOML. Raises 22023."""
    if action.nargs == 0:  # a flag without a value
        word = str(value).lower()
        if word not in (*TRUE, *FALSE):
            raise InvalidParameterValue(f"{origin}: {_option(action)} requires true or false")
        return word in TRUE
    if isinstance(action, argparse._AppendAction):
        elements = value if isinstance(value, list) else [part.strip() for part in str(value).split(",") if part.strip()]
        return [_scalar(action, element, origin) for element in elements]
    return _scalar(action, value, origin)


def _scalar(action: argparse.Action, value: Any, origin: str) -> Any:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise InvalidParameterValue(f"{origin}: {_option(action)} requires a text or a number")
    convert: Any = action.type or str
    try:
        converted = convert(str(value))
    except ValueError as error:
        detail = str(error) if isinstance(error, InvalidValue) else None
        raise InvalidParameterValue(f'{origin}: invalid value for {_option(action)}: "{value}"', detail=detail) from None
    if action.choices is not None and converted not in action.choices:
        raise InvalidParameterValue(
            f'{origin}: invalid value for {_option(action)}: "{value}"', hint=f"Available values: {', '.join(map(str, action.choices))}."
        )
    return converted


def _file(path: Path | None, environment: Mapping[str, str], by_name: Mapping[str, Command]) -> Configuration | None:
    """Returns the configuration file, or None if no option or variable names one and the current folder has none."""
    file_path = path or (Path(environment[variable("config")]) if variable("config") in environment else None)
    if file_path is None and not Path(FILE).is_file():
        return None
    file = read(file_path or Path(FILE))
    _check(file, by_name)
    return file


def read(path: Path) -> Configuration:
    """Reads a configuration file. Raises 22023 with the position of an error of its syntax."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidParameterValue(f"configuration file {path} cannot be read: {reason}") from None
    return parsed(text, path)


def parsed(text: str, path: Path) -> Configuration:
    """Parses the text of a configuration file. Raises 22023 with the position of an error of its syntax."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidParameterValue(f"{path}: {error}") from None
    tables: dict[str, dict[str, Any]] = {"": {}}
    for key, value in content.items():
        if isinstance(value, dict):
            tables[key] = value
        else:
            tables[""][key] = value
    return Configuration(path, tables, _lines(text))


def _lines(text: str) -> dict[tuple[str, str], int]:
    """Returns the line of each table (with the key "") and of each key."""
    lines: dict[tuple[str, str], int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if head := re.match(r"\s*\[\s*[\"']?([^\]\"']*?)[\"']?\s*\]", line):
            table = head[1]
            lines.setdefault((table, ""), number)
        elif key := re.match(r"\s*[\"']?([\w-]+)[\"']?\s*=", line):
            lines.setdefault((table, key[1]), number)
    return lines


def _check(file: Configuration, by_name: Mapping[str, Command]) -> None:
    """Raises 22023 with the position of the first table or key that does not exist."""
    everywhere = {name for command in by_name.values() for name in command.settings}
    for table, keys in file.tables.items():
        if table and table not in by_name:
            raise InvalidParameterValue(f'{file.position(table, "")}: there is no command "{table}"', hint=nearest(table, by_name))
        names = by_name[table].settings.keys() if table else everywhere
        for key in keys:
            if key not in names:
                what = f'"{key}" is not a setting of tailgate {table}' if table else f'unrecognized configuration parameter "{key}"'
                raise InvalidParameterValue(f"{file.position(table, key)}: {what}", hint=nearest(key, names))


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Returns a hint with the most similar name, or None. Hyphens and underscores are equal."""
    by_form = {each.replace("_", "-").lower(): each for each in names}
    near = difflib.get_close_matches(name.replace("_", "-").lower(), by_form, 1, SIMILAR)
    return f'Perhaps you meant "{by_form[near[0]]}".' if near else None


def _parsers(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yields the parser of each command that runs, with the command's last word."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if name and not below:
        yield name, parser
    for action in below:
        for word, command in action.choices.items():
            yield from _parsers(command, word)


def _settings(command: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    options = {_option(action): action for action in command._actions if action.option_strings}
    return {name: action for name, action in options.items() if name not in NOT_SETTINGS}


def _option(action: argparse.Action) -> str:
    return max(action.option_strings, key=len).removeprefix("--")


def _masked(text: str) -> str:
    return PASSWORD.sub(rf"\1:{MASK}@", text)
