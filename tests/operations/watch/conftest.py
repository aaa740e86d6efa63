"""A lake in this process with a gateway and the statements of an engine, and a connection to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.wire.live import Live
from tests.wire.statements import Statements


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    live = Live(tmp_path / "lake")
    statements = Statements(live)
    yield live
    statements.stop()
    live.close()


@pytest.fixture
def sql(live: Live) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        yield connection
