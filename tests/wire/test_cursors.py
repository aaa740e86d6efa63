"""Tests scrollable and holdable cursors against PostgreSQL 15: every direction of FETCH and MOVE."""

from __future__ import annotations

import random

import psycopg
import pytest

from tests.wire.answers import answer, same
from tests.wire.live import Live

SIZES = (0, 1, 7)
WAYS = (
    "next", "prior", "first", "last", "absolute {n}", "relative {n}", "{n}", "all", "forward", "forward {n}", "forward all", "backward",
    "backward {n}", "backward all",
)  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_every_direction(live: Live, postgres: str, seed: int, size: int) -> None:
    chosen = random.Random(seed)
    with psycopg.connect(live.dsn) as ours, psycopg.connect(postgres) as theirs:
        for connection in (ours, theirs):
            connection.execute(f"DECLARE c SCROLL CURSOR FOR SELECT n FROM generate_series(1, {size}) AS n".encode())
        for _ in range(150):
            way = chosen.choice(WAYS).format(n=chosen.randint(-size - 2, size + 2))
            text = f"{chosen.choice(('FETCH', 'MOVE'))} {way} {chosen.choice(('FROM', 'IN'))} c"
            assert answer(ours, text) == answer(theirs, text), text


def test_no_scroll(live: Live, postgres: str) -> None:
    for words in ("FETCH BACKWARD 1 FROM c", "FETCH PRIOR FROM c", "MOVE -1 IN c"):
        with psycopg.connect(live.dsn) as ours, psycopg.connect(postgres) as theirs:
            for connection in (ours, theirs):
                connection.execute("DECLARE c NO SCROLL CURSOR FOR SELECT n FROM generate_series(1, 5) AS n; FETCH 3 FROM c")
            assert answer(ours, words) == answer(theirs, words) == ("55000", [])


def test_held(live: Live, postgres: str) -> None:
    """A cursor WITH HOLD keeps its rows after COMMIT. ROLLBACK and DISCARD ALL close it."""
    same(
        live.dsn, postgres,
        "BEGIN", "DECLARE h SCROLL CURSOR WITH HOLD FOR SELECT n FROM generate_series(1, 4) AS n", "FETCH 1 FROM h", "COMMIT",
        "FETCH 2 FROM h", "FETCH PRIOR FROM h", "BEGIN", "FETCH ALL FROM h", "SELECT 1/0", "ROLLBACK", "FETCH FIRST FROM h", "CLOSE h",
        "FETCH 1 FROM h", "BEGIN", "DECLARE h CURSOR WITH HOLD FOR SELECT 1", "ROLLBACK", "FETCH 1 FROM h",
        "DECLARE h CURSOR WITH HOLD FOR SELECT 2", "FETCH 1 FROM h", "DISCARD ALL", "FETCH 1 FROM h",
        "BEGIN", "DECLARE h CURSOR WITH HOLD FOR SELECT 1/(n - 1) FROM generate_series(1, 2) AS n", "COMMIT", "SELECT 1", "FETCH 1 FROM h",
    )  # fmt: skip


def test_held_cursors_keep_their_rows(live: Live) -> None:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        connection.execute("DECLARE h CURSOR WITH HOLD FOR SELECT count(*) FROM v")
        live.tick([((10, "ten", 10.0), 1)])
        assert connection.execute("FETCH 1 FROM h").fetchall() == [(4,)]


def test_how_much_is_held_has_a_limit(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailgate.gateway.execute.blocks.cursors.HELD_BYTES_MAX", 1 << 20)
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        connection.execute("DECLARE a CURSOR WITH HOLD FOR SELECT n FROM generate_series(1, 100000) AS n")
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="at most 1 MiB"):
            connection.execute("DECLARE b CURSOR WITH HOLD FOR SELECT n FROM generate_series(1, 200000) AS n")
        connection.execute("CLOSE ALL")
        connection.execute("DECLARE b CURSOR WITH HOLD FOR SELECT n FROM generate_series(1, 100000) AS n")
