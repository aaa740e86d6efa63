"""The checks of settings' values by kind. Each returns the value in the format of SHOW, or raises PostgreSQL's error.

Source: PostgreSQL 15, src/backend/utils/misc/guc.c for the messages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from tailgate.gateway.settings.definitions import Setting
from tailgate.lake.catalog.names import listed
from tailgate.lake.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    TailgateError,
)
from tailgate.lake.types import TIMESTAMPTZ
from tailgate.sql.lexer.tokens import INTEGER_DIGITS_MAX
from tailgate.values.booleans import WORDS as BOOLEAN_WORDS
from tailgate.values.registry import read_text
from tailgate.values.times import zones
from tailgate.values.times.calendar import INFINITIES_TIME

INTEGER = re.compile(r"\s*[+-]?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9]\d*)")
OCTAL = re.compile(r"[+-]?0[0-7]+")
REAL = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
LONG = 1 << 63  # no setting has as large an integer
VALUE_CHARACTERS_MAX = 10_000  # of a setting's name and value together


def short(name: str, value: str) -> str:
    if len(name) + len(value) > VALUE_CHARACTERS_MAX:
        raise InvalidParameterValue(f"a setting and its value may have at most {VALUE_CHARACTERS_MAX} characters")
    return value


def _wrong(setting: Setting, value: str, hint: str | None = None) -> Exception:
    return InvalidParameterValue(f'invalid value for parameter "{setting.name}": "{value}"', hint=hint)


def _bool(setting: Setting, value: str) -> str:
    is_on = BOOLEAN_WORDS.get(value.lower())
    if is_on is not None:
        return "on" if is_on else "off"
    raise InvalidParameterValue(f'parameter "{setting.name}" requires a Boolean value')


def _enum(setting: Setting, value: str) -> str:
    if value.lower() not in setting.choices:
        raise _wrong(setting, value, f"Available values: {', '.join(setting.choices)}.")
    return value.lower()


def _in_range(setting: Setting, number: float, unit: str = "") -> None:
    """Raises 22023 if a number is outside the limits of a setting."""
    low, high = map(float, setting.choices)
    if not low <= number <= high:
        shown, low_shown, high_shown = (f"{n:.0f}" if setting.kind != "real" else f"{n:g}" for n in (number, low, high))
        unit = f" {unit}" if unit else ""
        raise InvalidParameterValue(
            f'{shown}{unit} is outside the valid range for parameter "{setting.name}" ({low_shown} .. {high_shown})'
        )


def _number(setting: Setting, value: str, *, whole: bool = True) -> tuple[float, str]:
    """Returns the number at the start of a value, and the unit behind it, as strtol and strtod of C read them. Raises 22023.

    `whole`: whether it is for an integer; then it is at most LONG.
    """
    match = INTEGER.match(value) if whole else None
    if match is not None and value[match.end() : match.end() + 1] not in (".", "e", "E"):
        digits = match[0].strip()
        number: float = math.inf if len(digits) > INTEGER_DIGITS_MAX else int(digits, 8 if OCTAL.fullmatch(digits) else 0)
    elif (match := REAL.match(value)) is not None:
        number = float(match[0])
    else:
        raise _wrong(setting, value)
    return max(-LONG, min(number, LONG)) if whole else number, value[match.end() :].strip()


def _rounded(setting: Setting, value: str, number: float) -> int:
    """Returns a number with a fraction as a whole number. Raises 22023."""
    if abs(number) >= 1 << 31:
        raise _wrong(setting, value, "Value exceeds integer range.")
    return round(number)


def _int(setting: Setting, value: str) -> str:
    number, unit = _number(setting, value)
    if unit:
        raise _wrong(setting, value)
    number = _rounded(setting, value, number)
    _in_range(setting, number)
    return str(number)


UNITS_MS = {"us": 0.001, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
UNITS_KB = {"B": 1 / 1024, "kB": 1, "MB": 1 << 10, "GB": 1 << 20, "TB": 1 << 30}
BLOCK_KB = 8  # the unit of effective_cache_size


def _with_unit(setting: Setting, value: str, units: Mapping[str, float], unit: str, size: int = 1) -> int:
    """Returns a number in `size` times the unit, which a value without a unit has."""
    amount, name = _number(setting, value)
    factor = units.get(name) if name else size
    if factor is None:
        listed_units = [f'"{each}"' for each in units]
        raise _wrong(setting, value, f"Valid units for this parameter are {', '.join(listed_units[:-1])}, and {listed_units[-1]}.")
    smaller = max((each for each in units.values() if each < factor), default=factor)  # in which fractions are rounded
    number = _rounded(setting, value, round(amount * factor / smaller) * smaller / size)
    _in_range(setting, number, unit if size == 1 else f"{size}{unit}")
    return number


def _in_units(number: int, units: Mapping[str, float]) -> str:
    """Returns a number of the smallest whole unit with the largest unit that needs no fraction."""
    for name, size in reversed(tuple(units.items())):
        if number > 0 and size >= 1 and number % size == 0:
            return f"{round(number / size)}{name}"
    return str(number)


def _milliseconds(setting: Setting, value: str) -> str:
    return _in_units(_with_unit(setting, value, UNITS_MS, "ms"), UNITS_MS)


def _kilobytes(setting: Setting, value: str) -> str:
    return _in_units(_with_unit(setting, value, UNITS_KB, "kB"), UNITS_KB)


def _blocks(setting: Setting, value: str) -> str:
    return _in_units(_with_unit(setting, value, UNITS_KB, "kB", BLOCK_KB) * BLOCK_KB, UNITS_KB)


def _real(setting: Setting, value: str) -> str:
    number, unit = _number(setting, value, whole=False)
    if unit:
        raise _wrong(setting, value)
    _in_range(setting, number)
    return f"{number:g}"


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
    zone = zones.setting(value)
    if zone is None:
        raise _wrong(setting, value)
    return zone[0]


def _time(setting: Setting, value: str) -> str:
    """Converts a timestamp to ms since the epoch, as text. Keeps a number of ms, and an empty text."""
    text = value.strip()
    if not text or text.isdigit():
        return text
    try:
        micros = read_text(text, TIMESTAMPTZ)
    except TailgateError as error:
        raise _wrong(setting, value, "Give a time in milliseconds, or a timestamp with its time zone.") from error
    assert isinstance(micros, int)
    if micros in INFINITIES_TIME:
        raise _wrong(setting, value, "Give a finite time.")
    return str(micros // 1000)


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
    "kB": _kilobytes,
    "blocks": _blocks,
    "real": _real,
    "encoding": _encoding,
    "datestyle": _date_style,
    "intervalstyle": _interval_style,
    "time": _time,
    "zone": _zone,
    "on": _on,
}
