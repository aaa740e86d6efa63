"""Tests that data a role may not read has no influence on the answers it receives.

A role alone, or two that cooperate, send random statements of every kind (`grammar`). A value that
only another role's table holds must not appear in any byte that they receive, and a role must
change only its own objects. TAILGATE_STATEMENTS sets the number of statements, TAILGATE_SEED the seed.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest

from tailgate.lake.errors import TailgateError
from tailgate.sql.statements import Empty, Statement, parse, split
from tailgate.sql.statements.ksqldb_statements import InsertMessage, InsertStream, PullKsqldb
from tests.authorization.attack import Attack, table
from tests.authorization.grammar import Grammar

SHORT, FULL = 300, 20_000
USERS = {"one role": ("low",), "two roles that cooperate": ("low", "helper")}
TRIES = 20_000  # limit of the statements until every kind has been generated
SUCCEEDING_MIN = 0.3  # share of the statements; refused statements reveal little


def attacked(path: Path, seed: int, users: Sequence[str], count: int) -> None:
    attack = Attack(path, seed, users)
    try:
        attack.run(count)
    finally:
        print(table(attack.kinds))
        sent, succeeded = sum(attack.kinds.values()), sum(n for (_, outcome), n in attack.kinds.items() if outcome == "ok")
        print(f"{', '.join(users)}: {sent} statements, {succeeded} succeeded, {attack.received} bytes received, seed {seed}")
        attack.close()
    assert succeeded > sent * SUCCEEDING_MIN
    assert not {kind for kind, outcome in attack.kinds if outcome == "XX000"}


def test_every_kind_of_statement_is_sent(seed: int) -> None:
    # INSERT is ksqlDB's only if its target is, and SELECT without EMIT only in its dialect, which a text does not tell.
    untold = {InsertMessage, InsertStream, PullKsqldb}
    grammar, missing = Grammar(random.Random(seed), "lo"), set(get_args(Statement)) - {Empty} - untold
    for _ in range(TRIES):
        for step in grammar.statements():
            with contextlib.suppress(TailgateError):
                missing -= {type(parse(part.text)) for part in split(step.text)}
        if not missing:
            return
    raise AssertionError("extend the grammar", missing)


@pytest.mark.parametrize("users", USERS.values(), ids=USERS)
def test_short(tmp_path: Path, seed: int, users: Sequence[str]) -> None:
    attacked(tmp_path, seed, users, int(os.environ.get("TAILGATE_STATEMENTS", SHORT)))


@pytest.mark.long
@pytest.mark.parametrize("users", USERS.values(), ids=USERS)
def test_full(tmp_path: Path, seed: int, users: Sequence[str]) -> None:
    attacked(tmp_path, seed, users, FULL)
