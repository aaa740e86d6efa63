"""Rows of pg_type for domains. Their checks are in `constraint_rows`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tailgate.gateway.catalog.relations.storage import storage_of
from tailgate.lake.catalog import Catalog, Domain


def types(catalog: Catalog) -> Iterator[dict[str, Any]]:
    """Yields the rows of pg_type. A domain has no array type."""
    for item in catalog.each(Domain):
        base, below = item.base.type, item.base.domain
        stored = storage_of(base)
        yield {
            "oid": item.id, "typname": item.name, "typnamespace": item.schema, "typowner": item.owner, "typlen": stored.length,
            "typbyval": stored.by_value, "typtype": "d", "typcategory": "A" if base.is_array else base.facts.category,
            "typispreferred": False, "typisdefined": True, "typdelim": ",", "typrelid": 0, "typelem": 0, "typarray": 0, "typsubscript": 0,
            "typinput": 2597, "typreceive": 2598, "typmodin": 0, "typmodout": 0, "typanalyze": 0, "typalign": stored.alignment,
            "typstorage": stored.storage, "typnotnull": item.not_null, "typbasetype": base.oid if below is None else below.id,
            "typtypmod": base.typmod if below is None else -1, "typndims": (base.is_array + base.multidimensional) * (below is None),
            "typcollation": stored.collation, "typdefault": item.default, "typdefaultbin": item.default,
        }  # fmt: skip
