"""A function of ksqlDB: its name, the types of its arguments and of its result, and its expression in PostgreSQL's dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tailgate.sql.ksqldb import types as t
from tailgate.sql.ksqldb.expressions import TypeName

# the type of an argument or a result, or a word for several
Kind = TypeName | str
ResultType = Callable[[Sequence[TypeName]], TypeName]
ARRAY, MAP = "array", "map"  # of any elements
ELEMENT = "element"  # the type of the elements of the first argument


@dataclass(frozen=True, slots=True)
class Function:
    """A function with one list of arguments.

    An argument is a type, `number`, `comparable` (a type with an order), `any`, `array`, `map`, `element` (of the array that is the
    first argument) or `same` (as the first argument). With `variadic`, the last argument occurs once or more often. A result is a
    type, `same` (as the first argument), `common` (of all arguments), `element`, or a function of the types of the arguments.

    In the template, {0}, {1}, … are the arguments, {*} all of them and {+} all but the first. {j0}, {j1}, … are arguments as jsonb,
    with JSON's null for NULL, {json0} with NULL for NULL, and {hex*} bytes in hexadecimal digits. {type0}, {type1}, … describe the
    types of the arguments (`types.descriptor`). {type} is PostgreSQL's type of the result. {order} and {latest} are the order of the
    records and the reverse order.

    - `may_fail`: its evaluation may raise an error although its arguments do not.
    - `json`: the template's value is a jsonb that contains the result.
    - `of_literal`: the template if the second argument is a literal, other than NULL and an empty text; '' for the same one.
    - `volatile`: its value is not determined by its arguments: `functions.volatile` returns it, and the template is empty.
    - `does`: what DESCRIBE FUNCTION prints.
    """

    name: str
    arguments: tuple[Kind, ...]
    result: Kind | ResultType
    template: str
    does: str = ""
    aggregate: bool = False
    may_fail: bool = False
    json: bool = False
    variadic: bool = False
    volatile: bool = False
    of_literal: str = ""

    def result_of(self, arguments: Sequence[TypeName]) -> TypeName:
        """Returns the type of the result."""
        if callable(self.result):
            return self.result(arguments)
        match self.result:
            case "same":
                return next((a for a in arguments if a != t.UNKNOWN), t.VARCHAR)
            case "element":
                return arguments[0].arguments[-1]
            case "common":
                return t.common(arguments)
            case str() as word:
                raise AssertionError(word)
        return self.result

    def kinds(self, count: int) -> tuple[Kind, ...] | None:
        """Returns the types for a number of arguments, or None if the function does not accept so many."""
        if not self.variadic:
            return self.arguments if count == len(self.arguments) else None
        missing = count - len(self.arguments)
        return None if missing < 0 else (*self.arguments, *self.arguments[-1:] * missing)

    def cost(self, arguments: Sequence[TypeName]) -> int | None:
        """Returns how many arguments need an implicit cast, and how far; None if the function does not accept them."""
        kinds = self.kinds(len(arguments))
        if self.result == "common" and not t.is_common(arguments):
            return None
        costs = None if kinds is None else [_cost(kind, a, arguments) for kind, a in zip(kinds, arguments, strict=True)]
        return None if costs is None or None in costs else sum(c for c in costs if c is not None)

    @property
    def signature(self) -> str:
        """Returns the types of the arguments as ksqlDB prints them. T is any type."""
        shown = [t.shown(kind) for kind in self._samples]
        return ", ".join([*shown[:-1], shown[-1] + "..."] if self.variadic else shown)

    @property
    def returns(self) -> str:
        """Returns the type of the result as ksqlDB prints it."""
        return t.shown(self.result_of(self._samples))

    @property
    def _samples(self) -> list[TypeName]:
        samples: list[TypeName] = []
        for kind in self.arguments:
            samples.append(kind if isinstance(kind, TypeName) else samples[0] if kind == "same" else SAMPLES[kind])
        return samples


ANY = TypeName("t")
TEXTS = TypeName("array", arguments=(t.VARCHAR,))
SAMPLES = {
    "any": ANY,
    "number": TypeName("number"),
    "comparable": ANY,
    ARRAY: TypeName("array", arguments=(ANY,)),
    MAP: TypeName("map", arguments=(t.VARCHAR, ANY)),
    ELEMENT: ANY,
}

KINDS = {"number": t.NUMBERS, "comparable": (*t.NUMBERS, "varchar", "bytes", "date", "time", "timestamp")}


def wanted_type(kind: Kind, arguments: Sequence[TypeName]) -> TypeName | None:
    """Returns the type to which an argument is cast, or None if it stays as it is."""
    if isinstance(kind, TypeName):
        return kind
    if kind == ELEMENT and arguments[0].name in t.STRUCTURES:
        return arguments[0].arguments[-1]
    if kind == "same" and arguments[0] != t.UNKNOWN:
        return arguments[0]
    return None


def _cost(kind: Kind, argument: TypeName, arguments: Sequence[TypeName]) -> int | None:
    if kind in (ARRAY, MAP):
        return 0 if argument.name == kind else None
    if argument == t.UNKNOWN or kind == "any":
        return 0
    if kind in KINDS:
        return 0 if argument.name in KINDS[kind] else None
    target = wanted_type(kind, arguments)
    if target is None or target == argument or (target.name == argument.name == "decimal"):
        return 0
    if target.name in t.STRUCTURES:
        return 1 if t.is_coercible(argument, target) else None
    return 1 + t.NUMBERS.index(target.name) if t.is_coercible(argument, target) else None
