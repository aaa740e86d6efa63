"""The entities of statements that do not read the catalog: SHOW FUNCTIONS, DESCRIBE FUNCTION and SHOW PROPERTIES.

Source: ksqlDB 0.29, documentation, "Run a ksqlDB statement".
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tailgate.gateway.ksqldb import lists
from tailgate.gateway.ksqldb.fields import Entity
from tailgate.sql.ksqldb import functions
from tailgate.sql.ksqldb.declared.refusals import OF_STREAMS, STREAMS
from tailgate.sql.statements import Show

BETWEEN_ARGUMENTS = re.compile(r", (?![^<]*>)")


def entity(show: Show, setting: Callable[[str], str]) -> Entity:
    """Returns the entity of a SHOW, one of KINDS. `setting`: the value of a property. Raises 42883."""
    match show.what:
        case "ksqldb functions":
            rows = sorted({(lists.name_of(row), _type(row), family.upper()) for family, of in functions.FAMILIES.items() for row in of})
            return {"@type": "function_names", "functions": [{"name": n, "type": t, "category": c} for n, t, c in rows]}
        case "describe function":
            return _function(show.setting)
    return {
        "@type": "properties",
        "properties": [
            {"name": _full_name(name), "scope": "KSQL", "value": value or None, "editable": effect == "obeyed", "level": "Query"}
            for name, value, effect in lists.properties(setting)
        ],
        "overwrittenProperties": [],
        "defaultProperties": [],
    }


KINDS = ("ksqldb functions", "describe function", "properties")


def _full_name(property: str) -> str:
    """Returns the name of a property, with the prefix of those of Kafka Streams."""
    return f"{STREAMS}{property}" if property in OF_STREAMS else property


def _function(name: str) -> Entity:
    described = lists.described_function(name)
    first = functions.variants(name.lower())[0]
    return {
        "@type": "describe_function",
        "name": lists.name_of(first),
        "description": first.does,
        "author": "Tailgate",
        "version": "",
        "path": "internal",
        "functions": [
            {"arguments": _arguments(variation), "returnType": returns, "description": does} for variation, returns, does in described
        ],
        "type": _type(first),
    }


def _arguments(variation: str) -> list[Entity]:
    """Returns the arguments of a variation.

    >>> [argument["type"] for argument in _arguments("F(MAP<VARCHAR, INTEGER>, DOUBLE)")]
    ['MAP<VARCHAR, INTEGER>', 'DOUBLE']
    """
    signature = variation.partition("(")[2][:-1]
    types = BETWEEN_ARGUMENTS.split(signature) if signature else []
    return [{"name": "", "type": type.rstrip("."), "description": "", "isVariadic": type.endswith("...")} for type in types]


def _type(function: functions.Function) -> str:
    if function.name in functions.AGGREGATE_NAMES:
        return "AGGREGATE"
    return "TABLE" if function.name in functions.TABLE_NAMES else "SCALAR"
