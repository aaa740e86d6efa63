"""The condition of DELETE DEAD LETTERS is evaluated only if the role may read all that it reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tailgate.engine.ddl import create_function, create_table, matching_letters
from tailgate.lake.catalog import DEAD_LETTERS, DEAD_LETTERS_KEY, Catalog, Change, DeadLetters, Source
from tailgate.lake.catalog.roles import OPERATOR, Role
from tailgate.lake.errors import FeatureNotSupported, InsufficientPrivilege
from tailgate.lake.types import arrow_schema
from tailgate.sql.statements import parse

LOW = Role(20, "low", login=True)
SOURCE, LETTERS = 17000, 17001


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    catalog = Catalog().apply(Change(put_roles=(LOW,)))
    text = "CREATE TABLE salaries (n int)"
    table, others = create_table(parse(text), text, catalog)  # type: ignore[arg-type]
    catalog = catalog.apply(Change(put=(table, *others)))
    text = "CREATE FUNCTION high() RETURNS int LANGUAGE SQL AS 'SELECT max(n) FROM salaries'"
    function = create_function(parse(text), text, catalog, OPERATOR.id)[0]  # type: ignore[arg-type]
    catalog = catalog.apply(Change(put=(function,)))
    source = Source(SOURCE, "s", (), owner=LOW.id)
    letters = DeadLetters(LETTERS, "s_dead_letters", DEAD_LETTERS, DEAD_LETTERS_KEY, True, depends=(SOURCE,), owner=LOW.id)
    return catalog.apply(Change(put=(source, letters)))


def evaluate(where: str, role: Role, catalog: Catalog) -> int:
    statement = parse(f"DELETE DEAD LETTERS OF s WHERE {where}")
    rows = arrow_schema(DEAD_LETTERS, weight=True).empty_table()
    return int(matching_letters(rows, catalog[LETTERS], statement.where, role, catalog).num_rows)  # type: ignore[attr-defined]


@pytest.mark.parametrize("where", ["high() > 100", "EXISTS (SELECT FROM salaries)"])
def test_relations_without_the_privilege_are_not_read(catalog: Catalog, where: str) -> None:
    with pytest.raises(InsufficientPrivilege, match="permission denied for table salaries"):
        evaluate(where, LOW, catalog)
    with pytest.raises(FeatureNotSupported, match="reads another relation"):
        evaluate(where, OPERATOR, catalog)


def test_dead_letters_need_a_privilege(catalog: Catalog) -> None:
    assert evaluate('"offset" = 1', LOW, catalog) == 0
    others = catalog.apply(Change(put=(replace(catalog[LETTERS], owner=OPERATOR.id),)))
    with pytest.raises(InsufficientPrivilege, match="permission denied for table s_dead_letters"):
        evaluate('"offset" = 1', LOW, others)
