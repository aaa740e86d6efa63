"""A session's settings: the values of SET, SHOW, RESET and the startup message, and those reported to clients.

`TABLE` lists the settings with PostgreSQL's spelling, defaults and rules. As in PostgreSQL, a name that contains a dot may be chosen
freely. ROLLBACK undoes a SET inside a block. SET LOCAL lasts until the end of the block.

    start-up, SET ──► check (by kind) ──► values ──► style (for encoding), ParameterStatus (if reported)

Source: PostgreSQL 15, chapter 20, "Server Configuration"; src/backend/utils/misc/guc.c for the messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from tailgate.gateway.encode.calendar import zone
from tailgate.gateway.encode.style import Style
from tailgate.gateway.resources.budgets import Charged
from tailgate.lake.errors import (
    CantChangeRuntimeParam,
    FeatureNotSupported,
    InvalidParameterValue,
    ProgramLimitExceeded,
    TailgateError,
    UndefinedObject,
)
from tailgate.lake.names import listed
from tailgate.lake.types import TIMESTAMPTZ
from tailgate.sql.input.literals import parse

# An existing minor version of PostgreSQL 15: drivers choose their statements by it, and some fail to parse a suffix.
SERVER_VERSION = "15.13"
SERVER_VERSION_NUM = "150013"


@dataclass(frozen=True, slots=True)
class Setting:
    """The definition of a setting.

    `kind`: how values are checked, a key of CHECKS. `choices`: the values of an enum, or the minimum and maximum of a number.
    `reported`: clients receive ParameterStatus when it changes. `fixed`: it cannot be changed. `about`: the text in SHOW ALL.
    """

    name: str
    default: str
    kind: str = "string"
    choices: tuple[str, ...] = ()
    reported: bool = False
    fixed: bool = False
    about: str = ""


_DAY_MS = str(2**31 - 1)
_ROWS = (
    Setting("application_name", "", reported=True, about="Sets the application name to be reported in statistics and logs."),
    Setting("array_nulls", "on", "bool"),
    Setting("backslash_quote", "safe_encoding"),
    Setting("bytea_output", "hex", "enum", ("escape", "hex"), about="Sets the output format for bytea."),
    Setting("check_function_bodies", "on", "bool"),
    Setting("client_encoding", "UTF8", "encoding", reported=True, about="Sets the client's character set encoding."),
    Setting(
        "client_min_messages", "notice", "enum", ("debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error")
    ),
    Setting("cursor_tuple_fraction", "0.1", "real"),
    Setting("DateStyle", "ISO, MDY", "datestyle", reported=True, about="Sets the display format for date and time values."),
    Setting("default_text_search_config", "pg_catalog.simple"),
    Setting("default_transaction_deferrable", "off", "bool"),
    Setting(
        "default_transaction_isolation", "read committed", "enum", ("serializable", "repeatable read", "read committed", "read uncommitted")
    ),
    Setting("default_transaction_read_only", "off", "bool", reported=True),
    Setting("effective_cache_size", "4GB"),
    Setting("enable_hashjoin", "on", "bool"),
    Setting("enable_indexscan", "on", "bool"),
    Setting("enable_mergejoin", "on", "bool"),
    Setting("enable_nestloop", "on", "bool"),
    Setting("enable_seqscan", "on", "bool"),
    Setting("escape_string_warning", "on", "bool"),
    Setting("extra_float_digits", "1", "int", ("-15", "3"), about="Sets the number of digits displayed for floating-point values."),
    Setting("from_collapse_limit", "8", "int", ("1", _DAY_MS)),
    Setting("geqo", "on", "bool"),
    Setting("idle_in_transaction_session_timeout", "0", "ms", ("0", _DAY_MS), about="Sets the maximum allowed idle time in a transaction."),
    Setting("idle_session_timeout", "0", "ms", ("0", _DAY_MS)),
    Setting("in_hot_standby", "off", reported=True, fixed=True),
    Setting("integer_datetimes", "on", reported=True, fixed=True),
    Setting(
        "IntervalStyle",
        "postgres",
        "intervalstyle",
        ("postgres", "postgres_verbose", "sql_standard", "iso_8601"),
        reported=True,
        about="Sets the display format for interval values.",
    ),
    Setting("is_superuser", "on", reported=True, fixed=True),
    Setting("jit", "on", "bool"),
    Setting("join_collapse_limit", "8", "int", ("1", _DAY_MS)),
    Setting("lc_collate", "C", fixed=True),
    Setting("lc_ctype", "C", fixed=True),
    Setting("lc_messages", "C"),
    Setting("lc_monetary", "C"),
    Setting("lc_numeric", "C"),
    Setting("lc_time", "C"),
    Setting("lock_timeout", "0", "ms", ("0", _DAY_MS)),
    Setting("max_connections", "10000", fixed=True),
    Setting("max_identifier_length", "63", fixed=True),
    Setting("max_index_keys", "32", fixed=True),
    Setting("max_prepared_transactions", "0", fixed=True),
    Setting("plan_cache_mode", "auto", "enum", ("auto", "force_generic_plan", "force_custom_plan")),
    Setting("quote_all_identifiers", "off", "bool"),
    Setting("random_page_cost", "4", "real"),
    Setting("row_security", "on", "bool"),
    Setting("real_time_recency", "off", "bool", about="Makes queries wait until what Kafka holds is in."),
    Setting("real_time_recency_timeout", "10s", "ms", ("0", _DAY_MS), about="Sets how long real_time_recency may wait."),
    Setting("role", "none"),
    Setting("search_path", '"$user", public', "path", about="Sets the schema search order for names that are not schema-qualified."),
    Setting("server_encoding", "UTF8", reported=True, fixed=True),
    Setting("server_version", SERVER_VERSION, reported=True, fixed=True, about="Shows the server version."),
    Setting("server_version_num", SERVER_VERSION_NUM, fixed=True),
    Setting("session_authorization", "", reported=True, fixed=True),
    Setting("session_replication_role", "origin"),
    Setting("ssl", "off", fixed=True),
    Setting("standard_conforming_strings", "on", "on", reported=True),
    Setting("statement_timeout", "0", "ms", ("0", _DAY_MS), about="Sets the maximum allowed duration of any statement."),
    Setting("synchronous_commit", "on"),
    Setting("synchronize_seqscans", "on", "bool"),
    Setting("tailgate.as_of", "", "time", about="Sets the time that queries read at, in ms or as a timestamp; empty is now."),
    Setting("TimeZone", "UTC", "zone", reported=True, about="Sets the time zone for displaying and interpreting time stamps."),
    Setting("timezone_abbreviations", "Default"),
    Setting("transaction_deferrable", "off", "bool"),
    Setting("transaction_isolation", "read committed", "enum", ("serializable", "repeatable read", "read committed", "read uncommitted")),
    Setting("transaction_read_only", "off", "bool"),
    Setting("wal_level", "replica", fixed=True),
    Setting("work_mem", "4MB"),
    Setting("xmloption", "content"),
)
TABLE: dict[str, Setting] = {row.name.lower(): row for row in _ROWS}
ALIASES = {
    "time zone": "timezone",
    "names": "client_encoding",
    "transaction isolation level": "transaction_isolation",
    "session authorization": "session_authorization",
}


def find(name: str) -> Setting | None:
    """Returns the setting with this name, or None for a custom setting (with a dot). Case and spaces do not matter. Raises 42704."""
    word = " ".join(name.lower().split())
    word = ALIASES.get(word, word)
    setting = TABLE.get(word)
    if setting is None and "." not in word:
        raise UndefinedObject(f'unrecognized configuration parameter "{name}"')
    return setting


VALUE_CHARACTERS_MAX = 10_000  # of a setting's name and value together
CUSTOM_MAX = 100  # settings with a dot in their name, per session


def _short(name: str, value: str) -> str:
    if len(name) + len(value) > VALUE_CHARACTERS_MAX:
        raise InvalidParameterValue(f"a setting and its value may have at most {VALUE_CHARACTERS_MAX} characters")
    return value


def _wrong(setting: Setting, value: str, hint: str | None = None) -> Exception:
    return InvalidParameterValue(f'invalid value for parameter "{setting.name}": "{value}"', hint=hint)


def _bool(setting: Setting, value: str) -> str:
    word = value.lower()
    if word and any(full.startswith(word) for full in ("true", "yes", "on")) and word != "o":
        return "on"
    if word and any(full.startswith(word) for full in ("false", "no", "off")) and word != "o":
        return "off"
    if word in ("1", "0"):
        return "on" if word == "1" else "off"
    raise InvalidParameterValue(f'parameter "{setting.name}" requires a Boolean value')


def _enum(setting: Setting, value: str) -> str:
    if value.lower() not in setting.choices:
        raise _wrong(setting, value, f"Available values: {', '.join(setting.choices)}.")
    return value.lower()


def _int(setting: Setting, value: str) -> str:
    try:
        number = int(value.strip(), 0)
    except ValueError:
        raise _wrong(setting, value) from None
    low, high = map(int, setting.choices)
    if not low <= number <= high:
        raise InvalidParameterValue(f'{number} is outside the valid range for parameter "{setting.name}" ({low} .. {high})')
    return str(number)


_UNITS_MS = {"us": 0.001, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def _milliseconds(setting: Setting, value: str) -> str:
    match = re.fullmatch(r"(-?\d{1,12}(?:\.\d{0,12})?)\s*([a-zA-Z]*)", value.strip())
    unit = _UNITS_MS.get(match[2] or "ms") if match else None
    if match is None or unit is None:
        raise _wrong(setting, value, 'Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".' if match else None)
    number = round(float(match[1]) * unit)
    if not 0 <= number < 2**31:
        raise InvalidParameterValue(f'{number} ms is outside the valid range for parameter "{setting.name}" (0 .. {2**31 - 1})')
    for name, size in reversed(_UNITS_MS.items()):
        if number and size >= 1 and number % size == 0:
            return f"{round(number / size)}{name}"
    return "0"


def _real(setting: Setting, value: str) -> str:
    try:
        return f"{float(value):g}"
    except ValueError:
        raise _wrong(setting, value) from None


def _encoding(setting: Setting, value: str) -> str:
    word = re.sub(r"[^a-z0-9]", "", value.lower())
    if word in ("utf8", "unicode"):
        return "UTF8"
    if word in ("sqlascii", "auto"):
        return "SQL_ASCII" if word == "sqlascii" else "UTF8"
    if word in ("latin1", "iso88591", "win1252", "windows1252", "latin9", "euctw", "eucjp", "sjis", "koi8r", "win1251"):
        raise FeatureNotSupported(f'client_encoding "{value}" is not supported', hint="Use UTF8.")
    raise _wrong(setting, value)


def _date_style(setting: Setting, value: str) -> str:
    order = "MDY"
    for word in value.lower().split(","):
        match word.strip():
            case "iso" | "":
                pass
            case "mdy" | "us" | "noneuro" | "noneuropean":
                order = "MDY"
            case "dmy" | "euro" | "european":
                order = "DMY"
            case "ymd":
                order = "YMD"
            case "sql" | "postgres" | "german":
                raise FeatureNotSupported(f'DateStyle "{word.strip()}" is not supported', hint="Use ISO.")
            case "default":
                return setting.default
            case _:
                raise InvalidParameterValue(
                    f'invalid value for parameter "DateStyle": "{value}"', detail=f'Unrecognized key word: "{word.strip()}".'
                )
    return f"ISO, {order}"


def _interval_style(setting: Setting, value: str) -> str:
    word = _enum(setting, value)
    if word in ("postgres_verbose", "sql_standard"):
        raise FeatureNotSupported(f'IntervalStyle "{word}" is not supported', hint="Use postgres or iso_8601.")
    return word


def _zone(setting: Setting, value: str) -> str:
    if value.lower() in ("local", "default"):
        return setting.default
    found = zone(value)
    if found is None:
        raise _wrong(setting, value)
    return found[0]


def _time(setting: Setting, value: str) -> str:
    """Converts a timestamp to ms since the epoch, as text. Keeps a number of ms, and an empty text."""
    text = value.strip()
    if not text or text.isdigit():
        return text
    try:
        micros = parse(text, TIMESTAMPTZ)
    except TailgateError as error:
        raise _wrong(setting, value, "Give a time in milliseconds, or a timestamp with its time zone.") from error
    assert isinstance(micros, datetime)
    return str(int(micros.timestamp() * 1000))


def _on(setting: Setting, value: str) -> str:
    if _bool(setting, value) == "off":
        raise FeatureNotSupported(f"{setting.name} cannot be turned off")
    return "on"


def _path(setting: Setting, value: str) -> str:
    try:
        listed(value)
    except ValueError:
        raise InvalidParameterValue(f'invalid value for parameter "search_path": "{value}"', detail="List syntax is invalid.") from None
    return value


CHECKS: Mapping[str, Callable[[Setting, str], str]] = {
    "string": lambda _, value: value,
    "path": _path,
    "bool": _bool,
    "enum": _enum,
    "int": _int,
    "ms": _milliseconds,
    "real": _real,
    "encoding": _encoding,
    "datestyle": _date_style,
    "intervalstyle": _interval_style,
    "time": _time,
    "zone": _zone,
    "on": _on,
}


MODES = ("isolation", "read_only", "deferrable")  # the initial value of transaction_<mode> is default_transaction_<mode>


@lru_cache(1000)
def milliseconds(shown: str) -> int:
    """Converts a duration in the format of SHOW to ms.

    >>> milliseconds("5s"), milliseconds("0")
    (5000, 0)
    """
    match = re.fullmatch(r"(\d+)(\w*)", shown)
    return round(int(match[1]) * _UNITS_MS[match[2] or "ms"]) if match else 0


Mark = tuple[dict[str, str], dict[str, str]]


class Settings:
    """The settings of one session.

    `changed`: a reported setting may have changed; the session clears it after it has sent ParameterStatus. `charged`: counts the
    memory of custom settings.
    """

    def __init__(self, startup: Mapping[str, str]) -> None:
        """Takes the values of the startup message, to which RESET returns. Raises 42704 for unknown names."""
        self._values = {key: row.default for key, row in TABLE.items()}
        self._before: dict[str, str] | None = None  # values at the beginning of the block
        self._local: dict[str, str] = {}  # values that SET LOCAL has replaced, restored at the end of the block
        self.changed = False
        self.charged: Charged | None = None
        self._marked: Mark | None = None
        self.style = Style()
        self.reads_now = True  # no tailgate.as_of and no real_time_recency: cached results may be used
        for name, value in startup.items():
            self.set(name, value)
        self._reset = dict(self._values)
        self.changed = False

    def fix(self, name: str, value: str) -> None:
        """Sets a value that the server determines, such as the user's name."""
        self._values[name] = self._reset[name] = value

    def get(self, name: str) -> tuple[str, str]:
        """Returns the name in PostgreSQL's spelling and the value. Raises 42704 if there is no such setting."""
        setting = find(name)
        key = setting.name.lower() if setting else name.lower()
        if key not in self._values:
            raise UndefinedObject(f'unrecognized configuration parameter "{name}"')
        return (setting.name if setting else key), self._values[key]

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def set(self, name: str, value: str, *, local: bool = False) -> str:
        """Sets a value and returns it in the format of SHOW. `local`: until the end of the block."""
        self._marked = None
        setting = find(name)
        key = setting.name.lower() if setting else name.lower()
        if setting is not None:
            if setting.fixed:
                raise CantChangeRuntimeParam(f'parameter "{setting.name}" cannot be changed')
            value = CHECKS[setting.kind](setting, _short(setting.name, value))
        else:
            _short(name, value)
            if key not in self._values and sum("." in known for known in self._values) >= CUSTOM_MAX:
                raise ProgramLimitExceeded(f"a session can have at most {CUSTOM_MAX} settings of its own")
        if local and key not in self._local:
            self._local[key] = self._values.get(key, "")
        elif not local:
            self._local.pop(key, None)
        self._put(key, value)
        return value

    def reset(self, name: str | None, *, local: bool = False) -> None:
        """Resets one setting, or all if `name` is None: RESET and SET … TO DEFAULT."""
        self._marked = None
        if name is None:
            for key in list(self._values):
                if key in self._reset:
                    self._put(key, self._reset[key])
                else:
                    self._drop(key)
            return
        setting = find(name)
        key = setting.name.lower() if setting else name.lower()
        if setting is not None and setting.fixed:
            raise CantChangeRuntimeParam(f'parameter "{setting.name}" cannot be changed')
        if local:
            self._local.setdefault(key, self._values.get(key, ""))
        self._put(key, self._reset.get(key, ""))

    @property
    def as_of(self) -> int | None:
        """The time of tailgate.as_of in ms since the epoch, or None if queries read at the newest time."""
        value = self._values["tailgate.as_of"]
        return int(value) if value else None

    def begin(self) -> None:
        """Begins a block: keeps the settings for ROLLBACK."""
        self._before = dict(self._values)

    def mark(self) -> Mark:
        """Returns a copy of the settings at a savepoint, for `back`. Returns the same object while nothing changes."""
        if self._marked is None:
            self._marked = dict(self._values), dict(self._local)
        return self._marked

    def back(self, mark: Mark) -> None:
        """Restores the settings from `mark`, at ROLLBACK TO."""
        values, local = mark
        self._local = dict(local)
        for key in [key for key in self._values if key not in values]:
            self._drop(key)
        for key, value in values.items():
            self._put(key, value)

    def end(self, *, undo: bool) -> None:
        """Ends a block: undoes each SET LOCAL, and with `undo` every change of the block."""
        self._marked = None
        local, before = self._local, self._before
        self._local, self._before = {}, None
        for key, value in before.items() if undo and before is not None else local.items():
            self._put(key, value)
        for mode in MODES:
            self._put(f"transaction_{mode}", self._values[f"default_transaction_{mode}"])

    def all(self) -> Iterator[tuple[str, str, str]]:
        """Yields (name, value, description) of each setting, for SHOW ALL."""
        for key, row in sorted(TABLE.items()):
            yield row.name, self._values[key], row.about

    def reported(self) -> dict[str, str]:
        """Returns the settings that clients are informed about (ParameterStatus), with their values."""
        return {row.name: self._values[key] for key, row in TABLE.items() if row.reported}

    def _drop(self, key: str) -> None:
        gone = self._values.pop(key)
        if self.charged is not None:
            self.charged.add(-len(gone))
        self._marked = None

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
        if key in ("tailgate.as_of", "real_time_recency"):
            self.reads_now = not self._values["tailgate.as_of"] and self._values["real_time_recency"] == "off"
        if key in ("timezone", "intervalstyle", "extra_float_digits", "bytea_output"):
            v = self._values
            self.style = Style(v["timezone"], v["intervalstyle"], int(v["extra_float_digits"]), v["bytea_output"])
