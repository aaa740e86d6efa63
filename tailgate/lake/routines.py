"""User-defined functions, as stored in items of kind 'function'.

The item's `columns` are the arguments (names may be empty). `query` is the body: a query in which `$n`
and the names of the arguments stand for the arguments. The rest is in `options`, as JSON. Functions
have a separate namespace from relations, and functions with different argument types may share a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tailgate.lake.catalog import Catalog, Item
from tailgate.lake.errors import AmbiguousFunction, UndefinedFunction
from tailgate.lake.names import Name, quoted
from tailgate.lake.types import Field, Type, field_from_json, field_to_json

Volatility = Literal["immutable", "stable", "volatile"]


@dataclass(frozen=True, slots=True)
class Routine:
    """The definition of a function.

    - `returns`: the type of the result; record for rows with several columns.
    - `defaults`: expressions for the last arguments, as text.
    - `rows`: the columns of a set-returning function; None if it returns one value.
    - `strict`: a NULL argument gives NULL, or an empty set.
    - `volatility`: as declared. It is only shown to users; the planner looks at the body.
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
        """Returns the item's options."""
        return {
            "returns": field_to_json(Field("", self.returns)),
            "defaults": list(self.defaults),
            "rows": None if self.rows is None else [field_to_json(f) for f in self.rows],
            "strict": self.strict,
            "volatility": self.volatility,
        }


def routine(item: Item) -> Routine:
    """Returns the definition of an item of kind 'function'."""
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
    """Returns a function's signature as in PostgreSQL's messages.

    >>> signature("f", (Type("int4"), Type("text")))
    'f(integer, text)'
    """
    return f"{name}({', '.join(map(str, types))})"


def matching(items: Sequence[Item], types: Sequence[Type]) -> Item | None:
    """Returns the function with exactly these argument types, ignoring modifiers, or None."""
    wanted = [(t.name, t.is_array) for t in types]
    return next((i for i in items if [(a.type.name, a.type.is_array) for a in i.columns] == wanted), None)


def find(name: Name, types: Sequence[Type] | None, catalog: Catalog) -> Item:
    """Returns the function that a statement names. Without types the name must be unique. Raises 42883 or 42725."""
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
    """Returns pg_get_function_arguments(), or pg_get_function_identity_arguments() without defaults."""
    made = routine(item)
    first = len(made.arguments) - len(made.defaults)
    texts = [f"{quoted(a.name)} {a.type}" if a.name else str(a.type) for a in made.arguments]
    if defaults:
        texts[first:] = [f"{text} DEFAULT {value}" for text, value in zip(texts[first:], made.defaults, strict=True)]
    return ", ".join(texts)


def result_of(item: Item) -> str:
    """Returns pg_get_function_result()."""
    made = routine(item)
    if made.rows is None:
        return str(made.returns)
    if not made.rows[0].name:
        return f"SETOF {made.returns}"
    return f"TABLE({', '.join(f'{quoted(c.name)} {c.type}' for c in made.rows)})"
