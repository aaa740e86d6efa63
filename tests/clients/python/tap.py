"""Prints the checks of one client in the Test Anything Protocol.

A check is `ok 1 - name`, or `not ok 1 - name` with the reason; the last line is `1..n`. PGHOST,
PGPORT, PGUSER and PGDATABASE give the server's address. FLAVOUR is `tailgate` or `postgres`. The
checks are the same for both, except for Tailgate's extensions (TAIL, views that follow writes).
"""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

HOST, PORT, USER, DATABASE = (os.environ[name] for name in ("PGHOST", "PGPORT", "PGUSER", "PGDATABASE"))
TAILGATE = os.environ["FLAVOUR"] == "tailgate"

# A query that takes very long.
SLOW = "SELECT count(*) FROM orders a, orders b, orders c, orders d WHERE a.id + b.id = c.id * d.id"

_count = 0
_recover: Callable[[], object] = lambda: None  # noqa: E731


def recover(function: Callable[[], object]) -> None:
    """Sets a function that runs after a failed check, so that later checks can pass."""
    global _recover
    _recover = function


@contextlib.contextmanager
def check(name: str) -> Iterator[None]:
    """Runs a check. It passes if the body raises no error. Later checks run in any case."""
    global _count
    _count += 1
    try:
        yield
    except Exception as error:  # noqa: BLE001  # any error is reported
        report_failure(name, error)
        _recover()
    else:
        print(f"ok {_count} - {name}", flush=True)


def report_failure(name: str, error: Exception) -> None:
    where = [frame for frame in traceback.extract_tb(error.__traceback__) if "checks" in frame.filename][-1:]
    text = f"{type(error).__name__}: {error}".replace("\n", " | ")
    print(f"not ok {_count} - {name}\n  # {text} at line {where[0].lineno if where else '?'}", flush=True)


def done() -> None:
    print(f"1..{_count}", flush=True)


def raises(kind: type[Exception], work: Any, *arguments: Any) -> Exception:
    """Returns the error of that class that a call raises."""
    try:
        work(*arguments)
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901)
# The rows of `kinds` as a driver returns them, by column.
KINDS: list[dict[str, Any]] = [
    {
        "id": 1, "a_boolean": True, "a_smallint": 32767, "an_integer": 2147483647, "a_bigint": 9223372036854775807, "a_real": 1.5,
        "a_double": 0.1, "a_numeric": Decimal("123456789.125"), "a_text": "plain", "a_varchar": "häßlich", "a_char": "ab   ",
        "a_bytea": b"\x00\xffa", "a_date": date(2026, 2, 28), "a_time": time(23, 59, 59, 500000), "a_timestamp": MOMENT,
        "a_timestamptz": MOMENT.replace(tzinfo=timezone.utc),
        "an_interval": timedelta(days=32, hours=3, minutes=4, seconds=5.5), "a_uuid": UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        "a_jsonb": {"a": [1, 2.5, None], "b": "ü"}, "integers": [1, None, -3], "texts": ["x", "y z", None, ""],
    },
    {
        "id": 2, "a_boolean": False, "a_smallint": -32768, "an_integer": -2147483648, "a_bigint": -9223372036854775808,
        "a_double": 1e300, "a_numeric": Decimal("-0.001"), "a_text": "", "a_varchar": "", "a_char": "     ", "a_bytea": b"",
        "a_date": date(1, 1, 1), "a_time": time(0), "a_timestamp": datetime(1999, 12, 31, 23, 59, 59),
        "a_timestamptz": datetime(1970, 1, 1, tzinfo=timezone.utc), "an_interval": timedelta(days=-1), "a_uuid": UUID(int=0), "a_jsonb": [],
        "integers": [], "texts": [],
    },
    {"id": 3, "a_boolean": None, "a_numeric": None, "a_text": None, "a_bytea": None, "a_timestamptz": None, "a_jsonb": None, "texts": None},
    {
        "id": 4, "a_text": 'two\nlines\t"quoted" \\ € 😀', "a_bytea": b"\\", "a_date": date(9999, 12, 31),
        "an_interval": timedelta(microseconds=1),
      "a_uuid": UUID(int=2**128 - 1), "a_jsonb": "text", "integers": [2147483647], "texts": [None],
    },
]  # fmt: skip


def same_kinds(rows: list[dict[str, Any]], without: tuple[str, ...] = ()) -> None:
    """Asserts that the rows of `kinds`, in the order of id, are correct."""
    assert len(rows) == len(KINDS), len(rows)
    for row, expected in zip(rows, KINDS, strict=True):
        assert len(row) == 21
        for name, value in expected.items():
            if name not in without:
                actual = bytes(row[name]) if name == "a_bytea" and row[name] is not None else row[name]
                assert actual == value, f"{name} of {row['id']}: {actual!r} and not {value!r}"
