"""Random values of every type, as PostgreSQL reads them; beside the edges in tests.sql.samples."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any

LETTERS = "abcABCxyzXYZ0129 ,.;:%_-'\"()[]{}+*/=<>äßé日😀"
WORDS = ("a", "b", "c", "ab", "é", "1", "12", "x y", "true", "null")
DAYS = date(2150, 1, 1).toordinal()


def generated(name: str, chance: random.Random) -> str:
    """A value of a type, by its name; `[]` for arrays of up to five."""
    if name.endswith("[]"):
        count = chance.choice((0, 1, 1, 2, 3, 5))
        return "{" + ", ".join(_element(name.removesuffix("[]"), chance) for _ in range(count)) + "}"
    return MAKERS[name](chance)


def _element(name: str, chance: random.Random) -> str:
    if chance.random() < 0.1:
        return "NULL"
    text = chance.choice(WORDS) if name == "text" else generated(name, chance)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _whole(bits: int) -> Callable[[random.Random], str]:
    return lambda chance: str(chance.choice((1, -1)) * chance.getrandbits(chance.randint(1, bits)))


def _float(digits: int) -> Callable[[random.Random], str]:
    def made(chance: random.Random) -> str:
        return f"{chance.choice((1, -1)) * chance.random() * 10 ** chance.randint(-6, digits):.{digits}g}"

    return made


def _numeric(chance: random.Random) -> str:
    return f"{chance.choice(('', '-'))}{chance.getrandbits(chance.randint(1, 30))}.{chance.randint(0, 99):02d}"


def _text(most: int) -> Callable[[random.Random], str]:
    return lambda chance: "".join(chance.choices(LETTERS, k=chance.randint(1, most)))


def _bytes(chance: random.Random) -> str:
    return "\\x" + chance.randbytes(chance.randint(0, 9)).hex()


def _date(chance: random.Random) -> str:
    return date.fromordinal(chance.randint(1, DAYS) if chance.random() < 0.2 else DAYS - chance.randint(1, 100_000)).isoformat()


def _time(chance: random.Random) -> str:
    return time(
        chance.randrange(24), chance.randrange(60), chance.randrange(60), chance.choice((0, 0, 500_000, chance.randrange(10**6)))
    ).isoformat()


def _timestamp(chance: random.Random) -> str:
    return f"{_date(chance)} {_time(chance)}"


def _moment(chance: random.Random) -> str:
    return f"{datetime(1970, 1, 1) + timedelta(microseconds=chance.randint(-(10**15), 4 * 10**15))}Z"


def _interval(chance: random.Random) -> str:
    parts = [f"{chance.randint(-40, 40)} {unit}" for unit in ("years", "mons", "days", "hours", "minutes") if chance.random() < 0.4]
    return " ".join([*parts, f"{chance.randint(-90, 90)}.{chance.randrange(10**6):06d} seconds"])


def _uuid(chance: random.Random) -> str:
    text = f"{chance.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _json(chance: random.Random, depth: int = 3) -> Any:
    kind = chance.randrange(10 if depth else 5)
    if kind in (5, 6):
        return [_json(chance, depth - 1) for _ in range(chance.randint(0, 3))]
    if kind > 6:
        return {chance.choice(("a", "b", "c", "é", "")): _json(chance, depth - 1) for _ in range(chance.randint(0, 3))}
    return chance.choice((None, True, False, chance.randint(-9, 9), chance.randint(-(10**6), 10**6) / 8, _text(4)(chance), "a", "12"))


MAKERS: dict[str, Callable[[random.Random], str]] = {
    "bool": lambda chance: chance.choice(("true", "false")),
    "int2": _whole(15),
    "int4": _whole(31),
    "int8": _whole(63),
    "float4": _float(6),
    "float8": _float(15),
    "numeric": _numeric,
    "text": _text(12),
    "varchar": _text(8),
    "bpchar": _text(5),
    "name": _text(8),
    "bytea": _bytes,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _moment,
    "interval": _interval,
    "uuid": _uuid,
    "jsonb": lambda chance: json.dumps(_json(chance), ensure_ascii=chance.random() < 0.5),
    "oid": lambda chance: str(chance.getrandbits(32)),
}

# of which sums and squares are exact, in any order
SUMMED: dict[str, Callable[[random.Random], str]] = {
    "float4": lambda chance: str(chance.randint(-(10**4), 10**4) / 4),
    "float8": lambda chance: str(chance.randint(-(10**6), 10**6) / 4),
    "int8": _whole(45),
}
