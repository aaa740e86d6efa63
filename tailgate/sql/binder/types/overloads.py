"""Overload resolution: finds the operator or function that a call refers to.

Source: PostgreSQL 15, sections "Operators", "Functions" of "Type Conversion";
func_select_candidate() in parse_func.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from tailgate.lake.errors import AmbiguousFunction, DatatypeMismatch, FeatureNotSupported, TailgateError, UndefinedFunction
from tailgate.lake.types import FACTS, GENERAL, NUMERIC, NUMERIC_PRECISION, NUMERIC_SCALE, UNKNOWN, Field, Type, numeric
from tailgate.sql import numeric_types
from tailgate.sql.binder.types import postgres_names
from tailgate.sql.binder.types.coercion import PREFERRED, bare_type, catalogue_name, coerce, common_numeric, from_name, implicit
from tailgate.sql.binder.types.dimensions import elements_of, fills_list
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.binder.types.polymorphism import ConcreteResult, concrete, is_undetermined
from tailgate.sql.functions import catalogue
from tailgate.sql.functions.comparison import SIGNS
from tailgate.sql.functions.entry import Function
from tailgate.sql.functions.general import templates as general_templates
from tailgate.sql.functions.multidimensional import templates as multidimensional
from tailgate.sql.numeric_types import rounded_to
from tailgate.sql.plan import Call, Case, Coalesce, GreatestLeast, Literal, Scalar
from tailgate.sql.plan.sort_keys import has_general
from tailgate.values.numeric.scales import scale_of

TEXTS = frozenset(("char", "text", "varchar", "bpchar", "name", "unknown"))
CASTS_HINT = "You might need to add explicit type casts."
NO_MATCH = "No function matches the given name and argument types. " + CASTS_HINT


def choose(candidates: tuple[Function, ...], types: tuple[Type, ...]) -> Function | TailgateError | None:
    """Returns the candidate that fits the argument types best.

    Returns None if none fits, and an error without its text if several fit equally well.
    """
    fitting = [row for c in candidates if (row := concrete(c, types)) is not None and _arity(row, len(types))]
    names = tuple(catalogue_name(t) for t in types)
    exact = [c for c in fitting if _expanded(c, len(types)) == names]
    if exact:
        return exact[0]
    if len(types) == 2 and (types[0] == UNKNOWN) != (types[1] == UNKNOWN) and any(c.kind == "operator" for c in fitting):
        other = names[0] if types[1] == UNKNOWN else names[1]
        exact = [c for c in fitting if c.arguments == (other, other)]
        if exact:
            return exact[0]
    fitting = [c for c in fitting if all(map(implicit, types, _expanded(c, len(types))))]
    if len(fitting) <= 1:
        return fitting[0] if fitting else None
    fitting = _best(fitting, lambda c: 0 if c.unified else sum(a == n for a, n in zip(_expanded(c, len(types)), names, strict=True)))
    if len(fitting) == 1:
        return fitting[0]
    fitting = _best(
        fitting,
        lambda c: (
            0 if c.unified else sum(a == n or _preferred(a, t) for a, n, t in zip(_expanded(c, len(types)), names, types, strict=True))
        ),
    )
    if len(fitting) == 1:
        return fitting[0]
    return _by_category(fitting, types)


def _by_category(fitting: list[Function], types: tuple[Type, ...]) -> Function | TailgateError:
    """Chooses by the type categories that the candidates have for arguments of unknown type.

    An argument's category is string if a candidate has that, else the one that all candidates
    share. If they do not share one, the arguments may all have the type of those whose type is known.
    """
    count, of_categories = len(types), fitting
    for i, type in enumerate(types):
        if type != UNKNOWN:
            continue
        categories = {_category(_expanded(c, count)[i]) for c in of_categories}
        category = "S" if "S" in categories else categories.pop() if len(categories) == 1 else None
        if category is None:
            break
        of_categories = [c for c in of_categories if _category(_expanded(c, count)[i]) == category]
        preferred = [c for c in of_categories if _expanded(c, count)[i] in PREFERRED]
        of_categories = preferred or of_categories
    else:
        fitting = of_categories
    if len(fitting) == 1:
        return fitting[0]
    known_types = {catalogue_name(t) for t in types if t != UNKNOWN}
    if len(known_types) == 1 and UNKNOWN in types:
        (only,) = known_types
        fitting = [c for c in fitting if all(implicit(from_name(only), a) for a in _expanded(c, count))]
        if len(fitting) == 1:
            return fitting[0]
    return AmbiguousFunction("")


def _best(candidates: list[Function], score: Callable[[Function], int]) -> list[Function]:
    """Returns the candidates with the highest score."""
    scores = [score(c) for c in candidates]
    return [c for c, s in zip(candidates, scores, strict=True) if s == max(scores)]


def _arity(function: Function, count: int) -> bool:
    return count >= len(function.arguments) if function.variadic else count == len(function.arguments)


def _expanded(function: Function, count: int) -> tuple[str, ...]:
    """Returns `count` argument types; the last type of a variadic function is repeated."""
    return function.arguments + function.arguments[-1:] * (count - len(function.arguments))


def _category(name: str) -> str:
    return "A" if name.endswith("[]") else FACTS[name].category if name in FACTS else "P"


def _preferred(name: str, type: Type) -> bool:
    """Returns whether the named type is preferred in the category of `type`.

    Returns False if `type` is unknown.
    """
    return name in PREFERRED and type != UNKNOWN and _category(name) == type.facts.category


def arguments(function: Function, operands: list[Scalar], parameters: Parameters) -> tuple[Scalar, ...]:
    """Casts the arguments to the argument types of the chosen function."""
    if numeric_types.keeps_general() and not numeric_types.elements_may_be_general() and _has_arrays(function):
        operands = list(map(fixed, operands))
        with numeric_types.of_elements():
            return arguments(function, operands, parameters)
    casts: list[Scalar] = []
    operands, shaped = _with_dimensions(function, operands, parameters)
    for name, scalar in zip(_expanded(function, len(operands)), operands, strict=True):
        if name == "any":
            casts.append(scalar)
            continue
        target = from_name(name, (operand.type for operand in operands))
        cast = coerce(scalar, target.array(multidimensional=True) if shaped and target.is_array else target, parameters)
        assert cast is not None, (function, name, scalar)
        casts.append(cast)
    if function.kind == "operator" and function.name in SIGNS and function.arguments == ("numeric", "numeric"):
        return one_numeric(*casts)
    if function.unified:
        casts = _same_numerics(casts)
    return tuple(casts)


def _with_dimensions(function: Function, operands: list[Scalar], parameters: Parameters) -> tuple[list[Scalar], bool]:
    """Returns the operands, and whether the function is called with multidimensional arrays.

    Arrays become lists of their elements for a function that depends on these alone.
    """
    names = _expanded(function, len(operands))
    types = [operand.type for operand in operands]
    pairs = zip(operands, names, strict=True)
    operands = [array_literal(s, from_name(n, types), parameters) if n.endswith("[]") else s for s, n in pairs]
    if not any(s.type.multidimensional for s in operands):
        return operands, False
    if multidimensional.signature(function) in multidimensional.OF_ELEMENTS:
        return list(map(elements_of, operands)), False
    return operands, multidimensional.has_template(function)


def array_literal(scalar: Scalar, type: Type, parameters: Parameters) -> Scalar:
    """Returns a scalar; a quoted literal as an array of a type if its text has other dimensions than one from 1."""
    if not isinstance(scalar, Literal) or scalar.type != UNKNOWN or scalar.value is None:
        return scalar
    array = coerce(scalar, type.array(), parameters, "explicit")
    assert array is not None
    return array if array.type.multidimensional else scalar


def _has_arrays(function: Function) -> bool:
    """Returns whether a polymorphic function takes or returns arrays."""
    result = function.result
    return function.unified and (any(a.endswith("[]") for a in function.arguments) or (isinstance(result, ConcreteResult) and result.array))


def _same_numerics(scalars: list[Scalar]) -> list[Scalar]:
    """Casts numerics and arrays of numerics to one scale. Other scalars stay unchanged."""
    numerics = [s.type.element for s in scalars if s.type.name == "numeric"]
    if not numerics:
        return scalars
    type = common_numeric(numerics)
    out = []
    for s in scalars:
        cast = coerce(s, _as_array(type, s.type), Parameters(), "explicit") if s.type.name == "numeric" else s
        assert cast is not None
        out.append(cast)
    return out


def _as_array(element: Type, like: Type) -> Type:
    """Returns the type, or an array of it if the other type is an array."""
    return replace(element, is_array=like.is_array, multidimensional=like.multidimensional)


def one_numeric(left: Scalar, right: Scalar) -> tuple[Scalar, Scalar]:
    """Casts two numerics to one precision and scale.

    Otherwise Spark would drop the digits that do not fit into 38 before it compares them. A literal
    takes the type of the other side if it loses no digits, so that a column needs no cast.
    """
    if left.type.general or right.type.general:
        return _to_general(left), _to_general(right)
    for a, b, swapped in ((left, right, False), (right, left, True)):
        if isinstance(b, Literal) and isinstance(b.value, Decimal) and not (isinstance(a, Literal) and swapped):
            precision, scale = a.type.decimal
            if b.type.decimal[1] <= scale and b.value.adjusted() < precision - scale:
                literal = replace(b, type=a.type)
                return (literal, a) if swapped else (a, literal)
    types = left.type, right.type
    scale = max(t.decimal[1] for t in types)
    room = scale + max(t.decimal[0] - t.decimal[1] for t in types), scale
    if room[0] > NUMERIC_PRECISION and numeric_types.may_be_general():
        return _to_general(left), _to_general(right)
    # A side whose type has room for both stays unchanged.
    type = replace(next((t for t in types if t.decimal == room), numeric_types.comparable(types)), declared=False)
    casts = [s if s.type.decimal == type.decimal else coerce(s, type, Parameters()) for s in (left, right)]
    assert casts[0] is not None
    assert casts[1] is not None
    return casts[0], casts[1]


def result(function: Function, operands: tuple[Scalar, ...]) -> Type:
    """Returns the type of a function's result for these arguments. It has no modifiers, except of numeric."""
    if function.name in ("round", "trunc") and function.arguments == ("numeric", "int4"):
        # the requested number of digits, if it is a literal
        digits = operands[1].value if isinstance(operands[1], Literal) else None
        return rounded_to(operands[0].type, digits if isinstance(digits, int) else None)
    if len(function.outputs) > 1:
        return Type("record", fields=tuple(Field(name, from_name(type)) for name, type in function.outputs))
    if callable(function.result):
        with numeric_types.of_elements(_has_arrays(function)):
            return bare_type(function.result(tuple(a.type for a in operands)))
    return from_name(function.result)


def _to_general(scalar: Scalar) -> Scalar:
    cast = coerce(scalar, _as_array(GENERAL, scalar.type), Parameters(), "explicit")
    assert cast is not None
    return cast


def specialized(function: Function, operands: tuple[Scalar, ...]) -> tuple[Function, tuple[Scalar, ...], Type]:
    """Returns the function with the templates for the numerics among its arguments and results, the arguments and the result's type.

    General numerics become fixed ones, with 16 digits after the decimal point, for a function that takes only these.
    """
    if function.name == "array_fill" and numeric_types.elements_may_be_general() and not fills_list(operands):
        spark, duckdb = multidimensional.FILLS[len(operands)]
        filling = replace(function, spark=spark, duckdb=duckdb)
        return filling, operands, result(function, operands).array(multidimensional=True)
    if function.name == "array_agg" and operands[0].type.multidimensional:
        return replace(function, duckdb=multidimensional.COLLECTED), operands, result(function, operands)
    if any(s.type.multidimensional for s in operands) and multidimensional.has_template(function):
        return _with_templates(function, operands)
    function, type = general_templates.of_new_views(function), result(function, operands)
    is_computed = type == NUMERIC and function.result == "numeric"  # not a column
    if any(has_general(s.type) for s in operands) or type.general or (is_computed and numeric_types.may_be_general()):
        return _with_general(function, operands, type)
    if not function.exact[0] or type.decimal[0] == NUMERIC_PRECISION or not _have_room(operands):
        return function, operands, type
    spark, duckdb = function.exact
    return replace(function, spark=spark, duckdb=duckdb), operands, type


def _with_templates(function: Function, operands: tuple[Scalar, ...]) -> tuple[Function, tuple[Scalar, ...], Type]:
    """Returns a function of multidimensional arrays as `specialized` does, from the function of lists of their elements."""
    lists = tuple(elements_of(s) for s in operands)
    row, casts, type = specialized(function, lists)
    if casts != lists:  # the function has no template for general numerics
        operands = tuple(map(fixed, operands))
    is_same = isinstance(function.result, ConcreteResult) and function.result.array
    return multidimensional.multidimensional(row), operands, type.array(multidimensional=True) if is_same else type


def _have_room(operands: tuple[Scalar, ...]) -> bool:
    """Returns whether the numerics have room in one decimal; otherwise DuckDB computes a remainder with floats."""
    sizes = [s.type.decimal for s in operands if s.type.name == "numeric"]
    return not sizes or max(p - s for p, s in sizes) + max(s for _, s in sizes) <= NUMERIC_PRECISION


def _with_general(function: Function, operands: tuple[Scalar, ...], type: Type) -> tuple[Function, tuple[Scalar, ...], Type]:
    is_fixed = not any(s.type.general for s in operands)
    if is_fixed and operands and (row := general_templates.of_fixed(function, operands[0].type)) is not None:
        return row, operands, GENERAL
    names = _expanded(function, len(operands))
    opaque = any(name == "any" and not s.type.general for name, s in zip(names, operands, strict=True))  # a row with a general field
    if not opaque and (row := general_templates.general(function)) is not None and (row.spark or not numeric_types.is_maintained()):
        casts = tuple(_to_general(s) if name in ("numeric", "numeric[]") else s for name, s in zip(names, operands, strict=True))
        return row, casts, _as_array(GENERAL, type) if type.name == "numeric" else type
    if all(name not in ("numeric", "numeric[]") for name in names) or function.unified:
        return function, operands, type
    casts = tuple(map(fixed, operands))
    return function, casts, NUMERIC if numeric_types.may_be_general() and type.general else result(function, casts)


def numeric_as(scalar: Scalar, target: Type) -> Scalar:
    """Returns a numeric, or an array of numerics, in the stored form of a column."""
    return _to_general(scalar) if target.general else fixed(scalar, target)


def fixed(scalar: Scalar, target: Type = NUMERIC) -> Scalar:
    """Returns the scalar; a general numeric is cast to the target, by default to that of `_fixed_type`."""
    if not scalar.type.general:
        return scalar
    type = target if target.modifiers else _as_array(_fixed_type(scalar), scalar.type)
    cast = coerce(scalar, type, Parameters(), "explicit")
    assert cast is not None
    return cast


def _fixed_type(scalar: Scalar) -> Type:
    """Returns a fixed numeric for the values of a general one: the scale of the fixed ones that it is chosen from, else 16 digits."""
    chosen: tuple[Scalar, ...] = ()
    match scalar:
        case _ if not numeric_types.may_be_general():  # the rows of earlier views have 16
            pass
        case Literal(value=Decimal() as value) if value.is_finite():
            return numeric(max(0, min(scale_of(value), NUMERIC_PRECISION)))
        case Call(function, arguments) if function.kind == "cast":
            chosen = arguments
        case Case(branches, otherwise):
            chosen = (*(value for _, value in branches), otherwise)
        case Coalesce(arguments) | GreatestLeast(_, arguments):
            chosen = arguments
    types = [_fixed_type(s) if s.type.general else s.type for s in chosen if not (isinstance(s, Literal) and s.value is None)]
    if not types or any(t.is_array or t.name not in ("numeric", *numeric_types.DIGITS) for t in types):
        return numeric(NUMERIC_SCALE)
    return numeric(numeric_types.comparable(types).decimal[1])


def operator(sign: str, types: tuple[Type, ...], position: int | None) -> Function:
    """Returns the operator for one or two operand types.

    Raises 42883, 42725, or 0A000 if only PostgreSQL has it.
    """
    candidates = catalogue.operators(sign) if len(types) == 2 else catalogue.prefixes(sign)
    choice = AmbiguousFunction("") if sign == "||" and _is_ambiguous_text(types) else choose(candidates, types)
    texts = [str(bare_type(t)).split("(")[0] if t.name == "numeric" else str(bare_type(t)) for t in types]
    shown = f"{texts[0]} {sign} {texts[1]}" if len(types) == 2 else f"{sign} {texts[0]}"
    if isinstance(choice, TailgateError):
        raise AmbiguousFunction(
            f"operator is not unique: {shown}",
            hint="Could not choose a best candidate operator. " + CASTS_HINT,
            position=position,
        )
    if choice is None:
        if not candidates and sign in postgres_names.OPERATORS:
            raise FeatureNotSupported(f"operator {sign} is not supported", position=position)
        raise UndefinedFunction(
            f"operator does not exist: {shown}",
            hint="No operator matches the given name and argument types. " + CASTS_HINT
            if len(types) == 2
            else "No operator matches the given name and argument type. You might need to add an explicit type cast.",
            position=position,
        )
    if not choice.duckdb:
        raise FeatureNotSupported(f"operator {shown} is not supported", position=position)
    return choice


def _is_ambiguous_text(types: tuple[Type, ...]) -> bool:
    """Returns whether types are "char" and one that is text, too: PostgreSQL has text || text, text || anynonarray and the reverse."""
    names = [type.name for type in types if not type.is_array]
    return len(names) == 2 and "char" in names and TEXTS.issuperset(names)


def function(name: str, types: tuple[Type, ...], position: int | None) -> Function:
    """Returns the function for these argument types.

    Raises 42883, 42725, or 0A000 if only PostgreSQL has it.
    """
    candidates = catalogue.calls(name)
    choice = choose(candidates, types)
    shown = f"{name.split(':')[0]}({', '.join(str(bare_type(t)) for t in types)})"
    if isinstance(choice, TailgateError):
        raise AmbiguousFunction(
            f"function {shown} is not unique", hint="Could not choose a best candidate function. " + CASTS_HINT, position=position
        )
    if choice is None:
        if not candidates and name in postgres_names.FUNCTIONS:
            raise FeatureNotSupported(f"function {name} is not supported", position=position)
        if name == "unnest" and types and types[0].is_array and types[0].name == "record":
            hint = "Use the subscripts that generate_subscripts returns."
            raise FeatureNotSupported("unnest of arrays of rows is not supported", hint=hint, position=position)
        if any(is_undetermined(row, types) for row in candidates):
            raise DatatypeMismatch("could not determine polymorphic type because input has type unknown")
        raise UndefinedFunction(
            f"function {shown} does not exist",
            hint=NO_MATCH,
            position=position,
        )
    if not choice.duckdb and not choice.by_session:
        raise FeatureNotSupported(f"function {choice} is not supported", position=position)
    return choice
