"""Random values of every type, in PostgreSQL's input format; tests.sql.samples has edge cases."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Any

from tailgate.lake.ranges import MULTIRANGE_OF
from tailgate.lake.types import BY_OID

LETTERS = "abcABCxyzXYZ0129 ,.;:%_-'\"()[]{}+*/=<>äßé日😀"
WORDS = ("a", "b", "c", "ab", "é", "1", "12", "x y", "true", "null")
DAYS = date(2150, 1, 1).toordinal()


def random_value(name: str, rng: random.Random) -> str:
    """Returns a value of a type; an array (`[]`) has up to five elements."""
    if name.endswith("[]"):
        count = rng.choice((0, 1, 1, 2, 3, 5))
        return "{" + ", ".join(_element(name.removesuffix("[]"), rng) for _ in range(count)) + "}"
    return GENERATORS[name](rng)


def _element(name: str, rng: random.Random) -> str:
    if rng.random() < 0.1:
        return "NULL"
    text = rng.choice(WORDS) if name == "text" else random_value(name, rng)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _integer(bits: int) -> Callable[[random.Random], str]:
    return lambda rng: str(rng.choice((1, -1)) * rng.getrandbits(rng.randint(1, bits)))


def _float(digits: int) -> Callable[[random.Random], str]:
    def generate(rng: random.Random) -> str:
        return f"{rng.choice((1, -1)) * rng.random() * 10 ** rng.randint(-6, digits):.{digits}g}"

    return generate


def _numeric(rng: random.Random) -> str:
    return f"{rng.choice(('', '-'))}{rng.getrandbits(rng.randint(1, 30))}.{rng.randint(0, 99):02d}"


def _text(length_max: int) -> Callable[[random.Random], str]:
    return lambda rng: "".join(rng.choices(LETTERS, k=rng.randint(1, length_max)))


def _bytes(rng: random.Random) -> str:
    return "\\x" + rng.randbytes(rng.randint(0, 9)).hex()


def _date(rng: random.Random) -> str:
    return date.fromordinal(rng.randint(1, DAYS) if rng.random() < 0.2 else DAYS - rng.randint(1, 100_000)).isoformat()


def _time(rng: random.Random) -> str:
    return time(rng.randrange(24), rng.randrange(60), rng.randrange(60), rng.choice((0, 0, 500_000, rng.randrange(10**6)))).isoformat()


def _timestamp(rng: random.Random) -> str:
    return f"{_date(rng)} {_time(rng)}"


def _timestamptz(rng: random.Random) -> str:
    return f"{datetime(1970, 1, 1) + timedelta(microseconds=rng.randint(-(10**15), 4 * 10**15))}Z"


# few bounds of ranges, in ascending order, so that ranges often overlap and meet
WHOLE = [str(n) for n in range(-9, 10)]
NUMBERS = [f"{n}{fraction}" for n in range(6) for fraction in ("", ".0", ".50", ".5")]
FEBRUARY = ["-infinity", *(f"2024-02-{day:02d}" for day in range(20, 30)), "infinity"]
RANGE_BOUNDS = {
    **dict.fromkeys(("int4range", "int8range"), WHOLE),
    "numrange": NUMBERS,
    **dict.fromkeys(("daterange", "tsrange", "tstzrange"), FEBRUARY),
}


def _range(bounds: Sequence[str]) -> Callable[[random.Random], str]:
    def generate(rng: random.Random) -> str:
        places = sorted(rng.choices(range(len(bounds)), k=2))
        low, high = (bounds[place] if rng.random() < 0.9 else "" for place in places)
        return rng.choice("[(") + low + "," + high + rng.choice(")]") if rng.random() < 0.95 else "empty"

    return generate


def _multirange(bounds: Sequence[str]) -> Callable[[random.Random], str]:
    generate = _range(bounds)
    return lambda rng: "{" + ",".join(generate(rng) for _ in range(rng.randint(0, 4))) + "}"


def _interval(rng: random.Random) -> str:
    parts = [f"{rng.randint(-40, 40)} {unit}" for unit in ("years", "mons", "days", "hours", "minutes") if rng.random() < 0.4]
    return " ".join([*parts, f"{rng.randint(-90, 90)}.{rng.randrange(10**6):06d} seconds"])


def _uuid(rng: random.Random) -> str:
    text = f"{rng.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _address(rng: random.Random) -> IPv4Address | IPv6Address:
    few = rng.choice((0xFF, 0xFFFF00, 2**32 - 1))  # few addresses are in the same networks
    if rng.random() < 0.5:
        return IPv4Address(rng.getrandbits(32) & few)
    return IPv6Address(rng.getrandbits(128) & (few | few << 96) if rng.random() < 0.7 else rng.getrandbits(128))


def _inet(rng: random.Random) -> str:
    address = _address(rng)
    return str(address) if rng.random() < 0.3 else f"{address}/{rng.randint(0, address.max_prefixlen)}"


def _cidr(rng: random.Random) -> str:
    address = _address(rng)
    return str(ip_network((address, rng.randint(0, address.max_prefixlen)), strict=False))


def _octets(count: int) -> Callable[[random.Random], str]:
    return lambda rng: rng.randbytes(count).hex(":")


def _bits(rng: random.Random, lengths: Sequence[int]) -> str:
    return "".join(rng.choice("01") for _ in range(rng.choice(lengths)))


def _json(rng: random.Random, depth: int = 3) -> Any:
    kind = rng.randrange(10 if depth else 5)
    if kind in (5, 6):
        return [_json(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    if kind > 6:
        return {rng.choice(("a", "b", "c", "é", "")): _json(rng, depth - 1) for _ in range(rng.randint(0, 3))}
    return rng.choice((None, True, False, rng.randint(-9, 9), rng.randint(-(10**6), 10**6) / 8, _text(4)(rng), "a", "12"))


STEPS = (".a", ".b", ".c", "[*]", "[0]", "[last]", "[1 to 2]", ".*", ".**", ".size()", ".type()", " ? (@ > 1)", ' ? (@ == "a")')
GENERATORS: dict[str, Callable[[random.Random], str]] = {
    "bool": lambda rng: rng.choice(("true", "false")),
    "int2": _integer(15),
    "int4": _integer(31),
    "int8": _integer(63),
    "float4": _float(6),
    "float8": _float(15),
    "numeric": _numeric,
    "text": _text(12),
    "varchar": _text(8),
    "bpchar": _text(5),
    "name": _text(8),
    "money": lambda rng: f"{rng.choice((rng.randint(-(10**6), 10**6), rng.randint(-(2**62), 2**62))) / 100:.2f}",
    "char": lambda rng: chr(rng.randrange(32, 127)),
    "regclass": lambda rng: str(rng.randrange(2**28, 2**32)),
    "regtype": lambda rng: rng.choice((str(rng.choice(list(BY_OID.values()))), str(rng.randrange(2**28, 2**32)))),
    "jsonpath": lambda rng: rng.choice(("$", "$", "strict $")) + "".join(rng.choice(STEPS) for _ in range(rng.randrange(5))),
    "bytea": _bytes,
    "date": _date,
    "time": _time,
    "timetz": lambda rng: _time(rng) + rng.choice("+-") + str(time(rng.randrange(16), rng.choice((0, 0, 30, rng.randrange(60))))),
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
    "interval": _interval,
    "uuid": _uuid,
    "inet": _inet,
    "cidr": _cidr,
    "macaddr": _octets(6),
    "macaddr8": lambda rng: _octets(8)(rng) if rng.random() < 0.7 else _octets(3)(rng) + ":ff:fe:" + _octets(3)(rng),
    "bit": lambda rng: _bits(rng, (1, 3, 8, 32)),
    "varbit": lambda rng: _bits(rng, range(70)),
    **{name: _range(bounds) for name, bounds in RANGE_BOUNDS.items()},
    **{MULTIRANGE_OF[name]: _multirange(bounds) for name, bounds in RANGE_BOUNDS.items()},
    "json": lambda rng: json.dumps(_json(rng), ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, None, 1))),
    "jsonb": lambda rng: json.dumps(_json(rng), ensure_ascii=rng.random() < 0.5),
    "oid": lambda rng: str(rng.getrandbits(32)),
}

# values whose sums and sums of squares are exact in any order
EXACT_SUMS: dict[str, Callable[[random.Random], str]] = {
    "float4": lambda rng: str(rng.randint(-(10**4), 10**4) / 4),
    "float8": lambda rng: str(rng.randint(-(10**6), 10**6) / 4),
    "int8": _integer(45),
    "money": lambda rng: f"{rng.randint(-(10**9), 10**9) / 100:.2f}",
}
