"""`python -m tests.wire.record [--differences]`: records PostgreSQL 15's answers to tests/wire/conversations.py.

It writes raw bytes to tests/wire/recorded/*.wire; review the diff. With --differences it writes no
file and prints where Tailgate's answers differ, in the form of docs/differences.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import psycopg

from testing.postgres import Postgres
from tests.tables.world import World
from tests.wire.conversations import CONVERSATIONS, SETUP
from tests.wire.recording import converse, different, read, written

RECORDED = Path(__file__).parent / "recorded"


def path(name: str) -> Path:
    return RECORDED / f"{name.replace(' ', '-')}.wire"


def record() -> None:
    server = Postgres({"timezone": "UTC", "autovacuum": "off"})
    server.start()
    try:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("create database wire lc_collate 'C' lc_ctype 'C' template template0")
        with psycopg.connect(server.dsn, dbname="wire", autocommit=True) as connection:
            connection.execute(SETUP)
            for name, steps in CONVERSATIONS.items():
                connection.execute("delete from w")
                path(name).write_text(written(steps, converse("127.0.0.1", server.port, steps)))
    finally:
        server.stop()


def differences() -> None:
    with tempfile.TemporaryDirectory(prefix="tailgate-wire-") as folder:
        world = World(Path(folder) / "lake")
        try:
            with psycopg.connect(world.dsn, autocommit=True) as connection:
                for text in SETUP.split(";"):
                    connection.execute(text)
                for name, steps in CONVERSATIONS.items():
                    connection.execute("delete from w")
                    _, theirs = read(path(name).read_text())
                    ours = converse("127.0.0.1", world.gateways[0].port, steps, theirs)
                    for number, lines in different(theirs, ours).items():
                        print(f"```wire {name}, {number}", *lines, "```", "", sep="\n")
        finally:
            world.close()


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--differences", action="store_true", help="print what Tailgate answers otherwise")
    differences() if words.parse_args().differences else record()
    return 0


if __name__ == "__main__":
    sys.exit(main())
