"""User-defined functions: how statements refer to them, and how they are printed.

Functions have a separate namespace from relations, and functions with different argument types may share a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tailgate.lake.catalog.catalog import Catalog
from tailgate.lake.catalog.items import Function
from tailgate.lake.catalog.names import Name, quoted
from tailgate.lake.errors import AmbiguousFunction, UndefinedFunction
from tailgate.lake.types import Type


def signature(name: str, types: Iterable[Type]) -> str:
    """Returns a function's signature as in PostgreSQL's messages.

    >>> signature("f", (Type("int4"), Type("text")))
    'f(integer, text)'
    """
    return f"{name}({', '.join(map(str, types))})"


def matching(functions: Sequence[Function], types: Sequence[Type]) -> Function | None:
    """Returns the function with exactly these argument types, ignoring modifiers, or None."""
    signature_types = [(t.name, t.is_array) for t in types]
    return next((f for f in functions if [(t.name, t.is_array) for t in f.types] == signature_types), None)


def find(name: Name, types: Sequence[Type] | None, catalog: Catalog) -> Function:
    """Returns the function that a statement names. Without types the name must be unique. Raises 42883 or 42725."""
    candidates = catalog.functions(name)
    if types is None:
        if not candidates:
            raise UndefinedFunction(f'could not find a function named "{name}"')
        if len(candidates) > 1:
            hint = "Specify the argument list to select the function unambiguously."
            raise AmbiguousFunction(f'function name "{name}" is not unique', hint=hint)
        return candidates[0]
    function = matching(candidates, types)
    if function is None:
        raise UndefinedFunction(f"function {signature(str(name), types)} does not exist")
    return function


def arguments_of(function: Function, *, defaults: bool = True) -> str:
    """Returns pg_get_function_arguments(), or pg_get_function_identity_arguments() without defaults."""
    first = len(function.arguments) - len(function.defaults)
    texts = [f"{quoted(a.name)} {a.type}" if a.name else str(a.type) for a in function.arguments]
    if function.variadic:
        texts[-1] = f"VARIADIC {texts[-1]}"
    if defaults:
        texts[first:] = [f"{text} DEFAULT {value}" for text, value in zip(texts[first:], function.defaults, strict=True)]
    return ", ".join(texts)


def result_of(function: Function) -> str:
    """Returns pg_get_function_result()."""
    if function.rows is None:
        return str(function.returns)
    if not function.rows[0].name:
        return f"SETOF {function.returns}"
    return f"TABLE({', '.join(f'{quoted(c.name)} {c.type}' for c in function.rows)})"
