r"""Tests the escapes of E'…', U&'…' and U&"…" against PostgreSQL: values, errors and their positions."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailgate.lake.errors import TailgateError
from tailgate.sql.lexer.literal_masking import mask_literals
from tailgate.sql.lexer.secret_masking import mask_secrets
from tailgate.sql.lexer.tokens import Cursor

BACKSLASHES = [
    r"wrong: \u061", r"wrong: \U0061", r"wrong: \udb99", r"wrong: \udb99xy", r"wrong: \udb99\\", r"wrong: \udb99\u0061",
    r"wrong: \U0000db99\U00000061", r"wrong: \U002FFFFF", r"\udcff", r"\ud83d\ude00", r"\xc3\xa9", r"\303\251 \t\n", r"\xff", r"a\xe2\x82z",
    r"\0", r"\x00", r"\u0000", r"\ud83d''", "\\ud83d'\n'\\ude00", r"''\'", r"\e2\q\xg", "\\\n", r"\u00e4\U0001F600",
]  # fmt: skip
UNICODE = [
    (r"d!0061t\+000061", "!"), (r" \ ", "!"), (r"wrong: \061", None), (r"wrong: \+0061", None), (r"wrong: \db99", None), (r"\db99xy", None),
    (r"\db99\\", None), (r"\db99\0061", None), (r"\+00db99\+000061", None), (r"\+2FFFFF", None), (r"\d83d\de00", None), (r"\de00", None),
    (r"\0000", None), (r"\\ \0041''", None), ("a\\", None), (r"x**y*0041", "*"), (r"x", "+"), (r"x", "f"), (r"x", "ab"), ("x", ""),
    ("x", " "),
]  # fmt: skip


def postgres(server: psycopg.Connection[Any], literal: str) -> tuple[Any, ...]:
    """Returns the value of a literal, or the SQLSTATE, message and position of its error."""
    try:
        row = server.execute(f"SELECT {literal}".encode()).fetchone()
    except psycopg.Error as error:
        position = error.diag.statement_position
        return error.sqlstate, error.diag.message_primary, position and int(position), error.diag.message_hint
    assert row is not None
    return (row[0],)


def ours(literal: str) -> tuple[Any, ...]:
    cursor = Cursor(f"SELECT {literal}")
    cursor.advance()
    try:
        value = cursor.string()
        cursor.finish()
        return (value,)
    except TailgateError as error:
        return error.sqlstate, error.message, None if error.position is None else error.position + 1, error.hint


@pytest.mark.parametrize("raw", BACKSLASHES)
def test_backslashes(server: psycopg.Connection[Any], raw: str) -> None:
    assert ours(f"E'{raw}'") == postgres(server, f"E'{raw}'")


@pytest.mark.parametrize(("raw", "escape"), UNICODE)
def test_unicode(server: psycopg.Connection[Any], raw: str, escape: str | None) -> None:
    literal = f"U&'{raw}'" + (f" /* by */ UESCAPE '{escape}'" if escape is not None else "")
    assert ours(literal) == postgres(server, literal)


@pytest.mark.parametrize("rest", ["+", "", "E'!'", "$$!$$", "U&'!'", "x"])
def test_uescape_takes_a_simple_string(server: psycopg.Connection[Any], rest: str) -> None:
    literal = rf"U&'d!0061' uescape {rest}"
    assert ours(literal) == postgres(server, literal)


PARTS = ["a", "\\\\", "\\q", "''", "\\u0041", "\\ud83d", "\\ude00", "\\U0001f600", "\\x4", "\\xc3", "\\251", "\\n", "u", "\n"]


@given(st.lists(st.sampled_from(PARTS)))
@settings(deadline=None, max_examples=200)
def test_random_backslashes(server: psycopg.Connection[Any], parts: list[str]) -> None:
    raw = "".join(parts)
    assert ours(f"E'{raw}'") == postgres(server, f"E'{raw}'")


def test_a_quoted_name_has_escapes() -> None:
    assert Cursor("U&\"d*0061t\" UESCAPE '*'").advance().value == "dat"


def test_no_part_of_a_literal_with_an_error_is_shown() -> None:
    assert mask_literals(r"SELECT E'confidential\u1'") == "SELECT …"
    assert mask_secrets(r"CREATE SECRET s AS E'confidential\u1'") == "CREATE SECRET s AS '********'"
