"""Functions that statements made: what an item of kind 'function' says of one.

The item's `columns` are its arguments (a name may be empty), `query` is its body, a query whose `$n` and whose argument names are the
arguments; the rest is in `options`, as JSON. Functions have names of their own, apart from relations, and several may share one if
their arguments are of other types.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lake.catalog import Catalog, Item
from lake.errors import AmbiguousFunction, UndefinedFunction
from lake.names import Name, quoted
from lake.types import Field, Type, field_from_json, field_to_json

Volatility = Literal["immutable", "stable", "volatile"]


@dataclass(frozen=True, slots=True)
class Routine:
    """`defaults`: texts of the last arguments' expressions. `returns`: of a set of rows with several columns it is record.

    `rows`: the columns of the rows it gives; None if it gives one value. `strict`: NULL for a NULL, and a set without rows.
    `volatility`: as declared, for those who ask; the body says itself what changes.
    """

    arguments: tuple[Field, ...]
    returns: Type
    defaults: tuple[str, ...] = ()
    rows: tuple[Field, ...] | None = None
    strict: bool = False
    volatility: Volatility = "volatile"

    @property
    def types(self) -> tuple[Type, ...]:
        return tuple(a.type for a in self.arguments)

    def options(self) -> dict[str, Any]:
        """Of the item."""
        return {
            "returns": field_to_json(Field("", self.returns)),
            "defaults": list(self.defaults),
            "rows": None if self.rows is None else [field_to_json(f) for f in self.rows],
            "strict": self.strict,
            "volatility": self.volatility,
        }


def routine(item: Item) -> Routine:
    options = item.options
    rows = options["rows"]
    return Routine(
        item.columns,
        field_from_json(options["returns"]).type,
        tuple(options["defaults"]),
        None if rows is None else tuple(field_from_json(f) for f in rows),
        options["strict"],
        options["volatility"],
    )


def signature(name: str, types: Iterable[Type]) -> str:
    """As PostgreSQL's messages name a function.

    >>> signature("f", (Type("int4"), Type("text")))
    'f(integer, text)'
    """
    return f"{name}({', '.join(map(str, types))})"


def matching(items: Sequence[Item], types: Sequence[Type]) -> Item | None:
    """The function of exactly these types of arguments, whatever is declared of them."""
    wanted = [(t.name, t.is_array) for t in types]
    return next((i for i in items if [(a.type.name, a.type.is_array) for a in i.columns] == wanted), None)


def find(name: Name, types: Sequence[Type] | None, catalog: Catalog) -> Item:
    """The function that a statement names; without types there must be one of the name. Raises 42883, 42725."""
    there = catalog.functions(name)
    if types is None:
        if not there:
            raise UndefinedFunction(f'could not find a function named "{name}"')
        if len(there) > 1:
            hint = "Specify the argument list to select the function unambiguously."
            raise AmbiguousFunction(f'function name "{name}" is not unique', hint=hint)
        return there[0]
    found = matching(there, types)
    if found is None:
        raise UndefinedFunction(f"function {signature(str(name), types)} does not exist")
    return found


def arguments_of(item: Item, *, defaults: bool = True) -> str:
    """As pg_get_function_arguments() says, or without defaults pg_get_function_identity_arguments()."""
    made = routine(item)
    first = len(made.arguments) - len(made.defaults)
    texts = [f"{quoted(a.name)} {a.type}" if a.name else str(a.type) for a in made.arguments]
    if defaults:
        texts[first:] = [f"{text} DEFAULT {value}" for text, value in zip(texts[first:], made.defaults, strict=True)]
    return ", ".join(texts)


def result_of(item: Item) -> str:
    """As pg_get_function_result() says."""
    made = routine(item)
    if made.rows is None:
        return str(made.returns)
    if not made.rows[0].name:
        return f"SETOF {made.returns}"
    return f"TABLE({', '.join(f'{quoted(c.name)} {c.type}' for c in made.rows)})"
