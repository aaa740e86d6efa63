"""Rows of pg_constraint, and the definitions of constraints.

The oid of a constraint is computed from the id of its table, or of its unique index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from tailgate.lake.catalog import Catalog, Domain, Index, Item, Table, View
from tailgate.lake.catalog.formats import CheckConstraint, ForeignKeyConstraint, ReferentialAction
from tailgate.lake.catalog.names import quoted
from tailgate.lake.catalog.schemas import TEMPORARY_ID
from tailgate.lake.constraints import enforced_indexes, referenced_key
from tailgate.lake.uncommitted import FIRST_ID
from tailgate.sql.lexer.tokens import tokens

INDEXES, CONSTRAINTS, CHECKS, FOREIGN_KEYS = (n << 28 for n in (6, 7, 11, 12))
# the places of the first table of a block and of the first temporary table in these oids, for which their ids are too large
PLACES = ((TEMPORARY_ID, 1 << 23), (FIRST_ID, 1 << 22), (0, 0))
CHECKS_MAX, FOREIGN_KEYS_MAX = 1 << 4, 1 << 4  # constraints of a table that have oids
ACTIONS: Mapping[ReferentialAction, str] = {"no action": "a", "restrict": "r", "cascade": "c", "set null": "n", "set default": "d"}

Row = dict[str, Any]


def checks_of(item: Item) -> tuple[CheckConstraint, ...]:
    """Returns the check constraints of a table or a domain; other items have none."""
    return item.checks if isinstance(item, Table | Domain) else ()


def foreign_keys_of(item: Item) -> tuple[ForeignKeyConstraint, ...]:
    """Returns the foreign keys of a table; other relations have none."""
    return item.foreign_keys if isinstance(item, Table) else ()


def key_name(item: Item) -> str:
    """Returns the name of the key of stored rows: of a primary key, or for a view of a unique index."""
    if item.kind in ("view", "materialized view"):
        return f"{item.name}_key"
    return (item.constraint if isinstance(item, Table) else None) or f"{item.name}_pkey"


def pg_constraint(catalog: Catalog) -> Iterator[Row]:
    for item in catalog.visible:
        if isinstance(item, Index) and item.constraint:
            kind, own = "p" if item.primary else "u", {"conindid": item.id, "connoinherit": True, "conkey": [i + 1 for i in item.positions]}
            own |= {"condeferrable": item.deferrable, "condeferred": item.deferred}
            yield _row(CONSTRAINTS + item.id, item.name, kind, item, item.depends[0]) | own
        if isinstance(item, Domain):
            yield from _checks(item, {"conrelid": 0, "contypid": item.id, "conkey": None})
        if not item.is_relation or isinstance(item, View):
            continue
        if item.key and item.kind != "materialized view":
            own = {"conindid": INDEXES + item.id, "connoinherit": True, "conkey": [i + 1 for i in item.key]}
            yield _row(CONSTRAINTS + item.id, key_name(item), "p", item, item.id) | own
        yield from _checks(item, {})
        for number, key in enumerate(foreign_keys_of(item)[:FOREIGN_KEYS_MAX]):
            yield _row(FOREIGN_KEYS + _place(item.id) * FOREIGN_KEYS_MAX + number, key.name, "f", item, item.id) | _foreign_key(
                key, catalog
            )


def _checks(item: Item, own: Row) -> Iterator[Row]:
    for number, check in enumerate(checks_of(item)[:CHECKS_MAX]):
        columns = {"convalidated": check.valid, "conkey": [i + 1 for i in check.columns], "conbin": check.text}
        yield _row(CHECKS + _place(item.id) * CHECKS_MAX + number, check.name, "c", item, item.id) | columns | own


def constraint_comments(item: Item) -> Iterator[tuple[int, str]]:
    """Yields the oids of the constraints that an item holds, with the comments on them."""
    if isinstance(item, Index):
        yield CONSTRAINTS + item.id, item.comments.get("constraint", "")
    if isinstance(item, Table):
        yield CONSTRAINTS + item.id, item.key_comment
    for number, check in enumerate(checks_of(item)[:CHECKS_MAX]):
        yield CHECKS + _place(item.id) * CHECKS_MAX + number, check.comment
    for number, key in enumerate(foreign_keys_of(item)[:FOREIGN_KEYS_MAX]):
        yield FOREIGN_KEYS + _place(item.id) * FOREIGN_KEYS_MAX + number, key.comment


def _place(id: int) -> int:
    """Returns the place of a table in the oids of its checks and foreign keys."""
    return next(id - first + place for first, place in PLACES if id >= first)


def _at(place: int) -> int:
    """Returns the id of the table at a place."""
    return next(place - begin + first for first, begin in PLACES if place >= begin)


def _foreign_key(key: ForeignKeyConstraint, catalog: Catalog) -> Row:
    referenced = catalog.expect(Table, key.table)
    target = referenced_key(key, referenced, catalog)
    index = 0 if target is None else target.index or INDEXES + referenced.id
    return {
        "condeferrable": key.deferrable, "condeferred": key.deferred, "convalidated": key.valid, "confrelid": key.table,
        "conindid": index, "confupdtype": ACTIONS[key.on_update], "confdeltype": ACTIONS[key.on_delete],
        "confmatchtype": "f" if key.match_full else "s", "connoinherit": True, "conkey": [i + 1 for i in key.columns],
        "confkey": [i + 1 for i in key.references], "confdelsetcols": [i + 1 for i in key.set_columns] or None,
    }  # fmt: skip


def _row(oid: int, name: str, kind: str, item: Item, relation: int) -> Row:
    """Returns a row with the usual values."""
    return {
        "oid": oid, "conname": name, "connamespace": item.schema, "contype": kind, "condeferrable": False, "condeferred": False,
        "convalidated": True, "conrelid": relation, "contypid": 0, "conindid": 0, "conparentid": 0, "confrelid": 0, "confupdtype": " ",
        "confdeltype": " ", "confmatchtype": " ", "conislocal": True, "coninhcount": 0, "connoinherit": False,
        "conkey": None, "confkey": None, "confdelsetcols": None, "conbin": None,
    }  # fmt: skip


# ---- definitions


def definition(oid: int, catalog: Catalog, *, pretty: bool = False) -> str | None:
    """Returns the definition of a constraint, as pg_get_constraintdef() prints it; None if there is none with this oid."""
    for base, size in ((FOREIGN_KEYS, FOREIGN_KEYS_MAX), (CHECKS, CHECKS_MAX)):
        if oid >= base:
            place, number = divmod(oid - base, size)
            item = catalog.items.get(_at(place))
            if isinstance(item, Table) and base == FOREIGN_KEYS:
                texts = foreign_keys(item, catalog)
            elif isinstance(item, Table | Domain):
                texts = checks(item, pretty=pretty)
            else:
                return None
            return texts[number] if number < len(texts) else None
    item = catalog.items.get(oid - CONSTRAINTS)
    if isinstance(item, Index):
        return unique(item, catalog)
    if item is None or not item.key:
        return None
    return f"PRIMARY KEY ({_columns(item, item.key)})"


def unique(index: Index, catalog: Catalog) -> str:
    """Returns the definition of the constraint of an index."""
    words = "PRIMARY KEY" if index.primary else "UNIQUE" if index.nulls_distinct else "UNIQUE NULLS NOT DISTINCT"
    when = " DEFERRABLE" * index.deferrable + " INITIALLY DEFERRED" * index.deferred
    return f"{words} ({_columns(catalog[index.depends[0]], index.positions)}){when}"


def checks(item: Table | Domain, *, pretty: bool = False) -> list[str]:
    """Returns the definitions of the checks of a table or a domain, with one pair of parentheses if they are `pretty`."""
    texts = [(without_parentheses(check.text), "" if check.valid else " NOT VALID") for check in item.checks]
    return [f"CHECK ({text}){suffix}" if pretty else f"CHECK (({text})){suffix}" for text, suffix in texts]


def without_parentheses(text: str) -> str:
    """Returns an expression without the parentheses around all of it.

    >>> without_parentheses("((a > 0))"), without_parentheses("(a > 0) AND (b > 0)"), without_parentheses("(a")
    ('a > 0', '(a > 0) AND (b > 0)', '(a')
    """
    while text.startswith("("):
        row = tokens(text)[:-1]
        depths = list(accumulate((token.value == "(") - (token.value == ")") if token.kind == "operator" else 0 for token in row))
        if 0 in depths[:-1] or depths[-1]:
            break
        text = text[row[0].end : row[-1].position].strip()
    return text


def foreign_keys(table: Table, catalog: Catalog) -> list[str]:
    """Returns the definitions of a table's foreign keys."""
    texts = []
    for key in table.foreign_keys:
        referenced = catalog[key.table]
        text = f"FOREIGN KEY ({_columns(table, key.columns)}) REFERENCES {catalog.name_of(referenced).sql}"
        text += f"({_columns(referenced, key.references)})" + " MATCH FULL" * key.match_full
        text += f" ON UPDATE {key.on_update.upper()}" if key.on_update != "no action" else ""
        text += f" ON DELETE {key.on_delete.upper()}" if key.on_delete != "no action" else ""
        text += f" ({_columns(table, key.set_columns)})" if key.set_columns else ""
        text += " DEFERRABLE" * key.deferrable + " INITIALLY DEFERRED" * key.deferred
        texts.append(text + ("" if key.valid else " NOT VALID"))
    return texts


def beyond_rows(table: Table, catalog: Catalog) -> list[str]:
    """Returns CONSTRAINT clauses for the unique constraints and the foreign keys of a table."""
    indexes = [index for index in enforced_indexes(table, catalog) if index.constraint]
    texts_by_name = [(index.name, unique(index, catalog)) for index in indexes]
    texts_by_name += zip((key.name for key in table.foreign_keys), foreign_keys(table, catalog), strict=True)
    return [f"CONSTRAINT {quoted(name)} {text}" for name, text in texts_by_name]


def _columns(item: Item, positions: tuple[int, ...]) -> str:
    return ", ".join(quoted(item.columns[i].name) for i in positions)
