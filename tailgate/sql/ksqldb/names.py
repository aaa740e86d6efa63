"""Names: ksqlDB folds them to upper case, PostgreSQL and the catalog to lower case.

    ksqlDB          catalog
    READINGS   ◄──►   readings      an unquoted name of either dialect
    `readings` ◄──►   "READINGS"
    `Readings` ◄──►   "Readings"    mixed case is the same in both

Only ASCII letters have a case here, as in PostgreSQL's folding. The mapping is its own inverse.
"""

from __future__ import annotations

import re

_LOWER, _UPPER = re.compile("[a-z]"), re.compile("[A-Z]")
_SWAPPED = {**{c: c - 32 for c in range(97, 123)}, **{c: c + 32 for c in range(65, 91)}}
# words that are names in back-quotes only
RESERVED = frozenset(
    """and as between by case cast create cross distinct drop else end false from full group grace having in inner insert into is join
    left like limit not null on or outer period right select then true values when where window with within""".split()
)
PLAIN = re.compile(r"[A-Z_@][A-Z0-9_@]*")


def catalog_name(name: str) -> str:
    """Returns the catalog's name for a name of ksqlDB.

    >>> catalog_name("READINGS"), catalog_name("readings"), catalog_name("Readings")
    ('readings', 'READINGS', 'Readings')
    """
    if _LOWER.search(name) and _UPPER.search(name):
        return name
    return name.translate(_SWAPPED)


def ksqldb_name(name: str) -> str:
    """Returns ksqlDB's name for a name of the catalog.

    >>> ksqldb_name("avg_readings"), ksqldb_name("A")
    ('AVG_READINGS', 'a')
    """
    return catalog_name(name)


def quoted(name: str) -> str:
    """Returns ksqlDB's spelling of a catalog name, in back-quotes if it needs them.

    >>> quoted("avg_readings"), quoted("A"), quoted("in")
    ('AVG_READINGS', '`a`', '`IN`')
    """
    spelling = ksqldb_name(name)
    return spelling if PLAIN.fullmatch(spelling) and name not in RESERVED else back_quoted(name)


def back_quoted(name: str) -> str:
    """Returns ksqlDB's spelling of a catalog name in back-quotes, for a place where a word may be a keyword that is not reserved."""
    return "`" + ksqldb_name(name).replace("`", "``") + "`"
