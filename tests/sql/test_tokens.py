"""Tests the lexer against PostgreSQL's rules: tokens cover the text and are never split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailgate.lake.errors import SyntaxError_
from tailgate.sql.lexer.tokens import Cursor, tokens
from tailgate.sql.statements import Empty, parse, split


def kinds(text: str) -> list[tuple[str, str]]:
    return [(t.kind, t.value) for t in tokens(text)[:-1]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Select "Sel""ect"', [("word", "select"), ("quoted", 'Sel"ect')]),
        ("'it''s'", [("string", "it's")]),
        ("'a'\n  'b'", [("string", "ab")]),
        ("'a' 'b'", [("string", "a"), ("string", "b")]),
        ("'a' -- then\n'b'", [("string", "ab")]),
        (r"E'a\n\x41\u00e4\'b\\'", [("string", "a\nAä'b\\")]),
        (r"'a\'", [("string", "a\\")]),
        (r"U&'d\0061t\+000061'", [("string", "data")]),
        (r'u&"d\0061t"', [("quoted", "dat")]),
        ("$$a'b$$ $x$ $$ $x$", [("string", "a'b"), ("string", " $$ ")]),
        ("/* a /* b */ c */ 1 -- 2", [("integer", "1")]),
        ("1 1.5 .5 1. 1e3 1.5E-3", [("integer", "1"), *(("decimal", x) for x in ("1.5", ".5", "1.", "1e3", "1.5E-3"))]),
        ("1..2", [("integer", "1"), ("operator", ".."), ("integer", "2")]),
        ("$1$2", [("parameter", "1"), ("parameter", "2")]),
        ("a->>'b'", [("word", "a"), ("operator", "->>"), ("string", "b")]),
        ("a=-1", [("word", "a"), ("operator", "="), ("operator", "-"), ("integer", "1")]),
        ("a @- b", [("word", "a"), ("operator", "@-"), ("word", "b")]),
        ("a--b", [("word", "a")]),
        ("a*/*x*/b", [("word", "a"), ("operator", "*"), ("word", "b")]),
        ("a!=b", [("word", "a"), ("operator", "<>"), ("word", "b")]),
        ("x::int[]", [("word", "x"), ("operator", "::"), ("word", "int"), ("operator", "["), ("operator", "]")]),
        ("B'101' x'1F'", [("bits", "b101"), ("bits", "x1F")]),
        ("Ärger", [("word", "Ärger")]),
        ("a" * 70, [("word", "a" * 63)]),
    ],
)
def test_tokens(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text) == expected


def test_an_error_is_raised_at_its_position() -> None:
    cursor = Cursor("a 'b")
    cursor.advance()
    with pytest.raises(SyntaxError_) as caught:
        cursor.advance()
    assert (caught.value.message, caught.value.position) == ('unterminated quoted string at or near "\'b"', 2)


def test_split() -> None:
    text = " select ';' ; /* ; */ ;; -- ;\n select $$;$$;\n 'x"
    pieces = split(text)
    assert [p.text for p in pieces] == ["select ';'", "select $$;$$", "'x"]
    assert [text[p.position :].startswith(p.text) for p in pieces] == [True] * 3
    assert [p.terminated for p in pieces] == [True, True, False]


def test_positions_count_from_the_statement() -> None:
    piece = split("SELECT 1;  SELECT FROM WHERE")[1]
    with pytest.raises(SyntaxError_) as caught:
        parse(piece)
    assert caught.value.position == piece.text.index("WHERE")
    assert caught.value.message == 'syntax error at or near "WHERE"'


@pytest.mark.parametrize("text", ["", "  ", "-- nothing", ";", "/* */ ;;"])
def test_empty(text: str) -> None:
    assert parse(text) == Empty()
    assert split(text) == ()


@given(st.text(alphabet="ab1 '\"$;-/*\\\n.:=<>@Ee(", max_size=40))
def test_tokens_cover_the_text(text: str) -> None:
    """Only blanks and comments are between tokens, and splitting a text at its semicolons loses nothing."""
    at = 0
    for token in tokens(text):
        assert token.position >= at
        assert text[token.position : token.end] == token.text
        between = text[at : token.position]
        assert not between.strip() or "--" in between or "/*" in between
        at = token.end
    for piece in split(text):
        assert text[piece.position :].startswith(piece.text)


@given(st.text(alphabet="ab '\"$;-/*\\\n.", max_size=60))
def test_splitting_pieces_again_changes_nothing(text: str) -> None:
    for piece in split(text, "postgresql"):  # by other rules, a text whose piece ksqlDB allows may not be allowed as a whole
        again = split(piece.text, "postgresql")
        assert [p.text for p in again] == [piece.text] or len(again) == 0
