"""Names of ksqlDB and of the catalog are mapped one to one."""

from __future__ import annotations

import random
from itertools import product

import pytest

from tailgate.sql.ksqldb.names import catalog_name, ksqldb_name, quoted
from tailgate.sql.ksqldb.tokens import tokens

LETTERS = "abAB_1é"


def test_the_mapping_is_a_bijection() -> None:
    names = ["".join(letters) for n in range(1, 5) for letters in product(LETTERS, repeat=n)]
    assert len({catalog_name(name) for name in names}) == len(names)
    assert all(ksqldb_name(catalog_name(name)) == name for name in names)
    assert all(catalog_name(ksqldb_name(name)) == name for name in names)


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("avg_readings", "avg_readings"),
        ("AVG_Readings", "avg_readings"),
        ("`a`", "A"),
        ('"a"', "A"),
        ("`A`", "a"),
        ("`Sensor Id`", "Sensor Id"),
        ("`a``b`", "A`B"),
        ("É", "É"),
    ],
)
def test_names_as_typed(typed: str, name: str) -> None:
    token, end = tokens(typed)
    assert (token.value, end.kind) == (name, "end")


def test_a_printed_name_is_read_back(seed: int) -> None:
    choices = random.Random(seed)
    for _ in range(500):
        name = "".join(choices.choices('aAbB_ 1`"é.', k=choices.randint(1, 6)))
        assert tokens(quoted(name))[0].value == name
