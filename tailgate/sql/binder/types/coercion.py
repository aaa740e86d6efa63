"""Implicit and explicit casts, and the common type of several expressions.

Source: PostgreSQL 15, "Type Conversion"; src/backend/parser/parse_coerce.c.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal

from tailgate.lake.errors import CannotCoerce, DatatypeMismatch, FeatureNotSupported, TailgateError
from tailgate.lake.types import FRACTIONAL, GENERAL, INT4, NUMERIC, TEXT, UNKNOWN, Type
from tailgate.sql import numeric_types
from tailgate.sql.binder.types import enums
from tailgate.sql.binder.types.dimensions import as_list, with_dimensions
from tailgate.sql.binder.types.interval_fields import RESTRICTED, has_all_digits, last_field, restricted
from tailgate.sql.binder.types.literals import literal
from tailgate.sql.binder.types.numeric_modifiers import has_room, limited
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.functions import arrays, catalogue
from tailgate.sql.functions.casts import LENGTHS, OUTPUT
from tailgate.sql.functions.entry import Context, Function
from tailgate.sql.functions.general import templates as general_templates
from tailgate.sql.functions.multidimensional import templates as multidimensional
from tailgate.sql.plan import Call, Case, IsNull, Literal, Parameter, Scalar, rows
from tailgate.sql.plan.rows import is_row
from tailgate.values.numbers.numerics import scaled

PREFERRED = ("bool", "text", "float8", "oid", "timestamptz", "interval", "inet", "varbit")
MODIFIED = {name: Function("cast", (name,), name, *templates, kind="cast") for name, templates in LENGTHS.items()}
RANKS: dict[Context, int] = {"implicit": 0, "assignment": 1, "explicit": 2}
# Any type can be cast to these on assignment, by its output function, and from these explicitly, by
# its input function.
STRINGS = ("text", "varchar", "bpchar", "name")


def bare_type(type: Type) -> Type:
    """Returns the type without modifiers, except of numeric.

    Operators and functions ignore modifiers.
    """
    return replace(type, modifiers=(), declared=True) if type.modifiers and type.name != "numeric" else type


def same(a: Type, b: Type) -> bool:
    """Returns whether two types are equal, ignoring modifiers."""
    if a.enum is not None and b.enum is not None and a.enum.id != b.enum.id:
        return False
    return a.name == b.name and a.is_array == b.is_array and (a.composite and a.composite.id) == (b.composite and b.composite.id)


def implicit(source: Type, name: str) -> bool:
    """Returns whether a type casts implicitly to the named type."""
    if source == UNKNOWN or name == "any":
        return True
    if name == catalogue_name(source):
        return True
    if source.is_array and name.endswith("[]"):
        return implicit(source.element, name[:-2])
    row = catalogue.cast(catalogue_name(source), name)
    return row is not None and row.context == "implicit"


def catalogue_name(type: Type) -> str:
    """Returns a type's name as the function catalogue spells it."""
    return type.name + "[]" if type.is_array else type.name


def from_name(name: str, types: Iterable[Type] = ()) -> Type:
    """Returns the type with a name of the function catalogue. An enum or composite type is the one among the types of the arguments."""
    type = Type(name[:-2], is_array=True) if name.endswith("[]") else Type(name)
    actual = next((t for t in types if t.name == type.name and (t.enum or t.composite)), None) if type.name in ("enum", "record") else None
    return type if actual is None else replace(actual, is_array=type.is_array, multidimensional=False)


def coerce(
    scalar: Scalar, target: Type, parameters: Parameters, context: Context = "implicit", position: int | None = None
) -> Scalar | None:
    """Casts a scalar to a type. Returns None if the context allows no such cast.

    A quoted literal is parsed as the target's type at once. A parameter without a type gets the
    target's type.
    """
    source = scalar.type
    if source == UNKNOWN:
        if isinstance(scalar, Parameter):
            settled = parameters.settle(scalar, bare_type(target) if not target.modifiers or target.name != "numeric" else NUMERIC)
            return settled if settled.type == target else coerce(settled, target, parameters, context, position)
        if isinstance(scalar, Literal):
            target = numeric_types.of_array_literal(target)
            if scalar.value is None:
                return Literal(None, target, scalar.position)
            is_cut = target.name in FRACTIONAL or (context == "explicit" and target.name in LENGTHS)
            base = replace(target, modifiers=()) if target.general else bare_type(target) if is_cut else target
            value = literal(str(scalar.value), target if target.fields_of_interval and not target.is_array else base, scalar.position)
            if target.is_array:
                array = value if context == "explicit" or target.multidimensional else as_list(value)
                return _modified(array, replace(target, multidimensional=array.type.multidimensional))
            return _modified(Literal(value.value, base, value.position), target) if base is not target else value
        return None
    if is_row(target) and source.name in STRINGS and not source.is_array:
        return _row_of_text(scalar, target, parameters, position) if context == "explicit" and target.composite is not None else None
    if is_row(source):
        return _row(scalar, target, parameters, context, position)
    if source.is_array and target.is_array and source.multidimensional != target.multidimensional:
        return coerce(with_dimensions(scalar) if target.multidimensional else as_list(scalar), target, parameters, context, position)
    if same(source, target):
        return _numeric(scalar, target, position) if source.general != target.general else _modified(scalar, target)
    if source.is_array or target.is_array:
        return _array(scalar, target, parameters, context, position)
    row = enums.conversion(source, target) or catalogue.cast(catalogue_name(source), catalogue_name(target))
    if row is None:
        return _through_text(scalar, source, target, parameters, context, position)
    if RANKS[row.context] > RANKS[context]:
        return None
    if not row.duckdb:
        raise FeatureNotSupported(f"casting {source} to {target} is not supported", position=position or _place(scalar))
    if (
        source.general
        or target.general
        or (target == NUMERIC and numeric_types.may_be_general() and source.name not in numeric_types.DIGITS)
    ):
        return _general(scalar, target, position)
    result = _result(row, scalar, target)
    if isinstance(scalar, Literal) and scalar.value is None:
        return Literal(None, target if target.modifiers else result, scalar.position)
    folded = _folded(scalar, result)
    return _modified(folded or Call(row, (scalar,), result, position), target)


def _numeric(scalar: Scalar, target: Type, position: int | None) -> Scalar:
    """Casts between general and fixed numerics. A general numeric has the type numeric without modifiers already."""
    if scalar.type.general and not target.modifiers:
        return scalar
    if isinstance(scalar, Literal) and not scalar.type.is_array and target.general:
        value = scaled(scalar.value, *scalar.type.decimal) if isinstance(scalar.value, Decimal) else scalar.value
        return _modified(replace(scalar, value=value, type=GENERAL), target)
    return _general(scalar, target, position)


def _general(scalar: Scalar, target: Type, position: int | None) -> Scalar:
    """Casts from or to a general numeric. Raises 0A000."""
    source = scalar.type
    function = general_templates.cast(source.element, target.element)
    if function is None:
        raise FeatureNotSupported(f"casting {source} to {target} is not supported", position=position or _place(scalar))
    is_fixed = target.name != "numeric" or (target.modifiers and not target.general)
    result = bare_type(target) if is_fixed else replace(GENERAL, is_array=target.is_array)
    if source.is_array:
        function = multidimensional.each(function, source, target.name)
        result = result.array(multidimensional=source.multidimensional)
    return _modified(Call(function, (scalar,), result, position), target)


def _result(row: Function, scalar: Scalar, target: Type) -> Type:
    """Returns the type of a value that a row of the catalogue has cast."""
    if target.enum is not None or (target.modifiers and _applies_modifiers(row, target)):
        return target
    if target.name == "numeric" and isinstance(scalar, Literal) and type(scalar.value) is int:
        return numeric_types.of_literal(Decimal(scalar.value))
    return row.result((scalar.type,)) if callable(row.result) else from_name(row.result)


def _applies_modifiers(row: Function, target: Type) -> bool:
    """Returns whether a cast applies the modifiers of its target itself."""
    return target.name == "numeric" or "{length}" in row.duckdb


def _array(scalar: Scalar, target: Type, parameters: Parameters, context: Context, position: int | None) -> Scalar | None:
    """Casts arrays: element by element, to text and from text."""
    source = scalar.type
    if source.is_array and target.is_array:
        row = enums.conversion(source.element, target.element) or catalogue.cast(source.name, target.name)
        if row is None or RANKS[row.context] > RANKS[context]:
            return None
        if isinstance(scalar, Literal) and scalar.value is None:
            return Literal(None, target, scalar.position)
        if source.general or target.general:
            return _general(scalar, target, position)
        result = target
        if target.name == "numeric" and not target.modifiers and callable(row.result):
            result = row.result((source.element,)).array(multidimensional=source.multidimensional)
        plainly = result if _applies_modifiers(row, result) else replace(result, modifiers=())
        return _modified(Call(multidimensional.each(row, source, target.name), (scalar,), plainly, position), target)
    if target.name in STRINGS and not target.is_array and RANKS[context] >= RANKS["assignment"]:
        printed = elements_as_text(scalar, position)
        to_text = multidimensional.TO_TEXT if source.multidimensional else arrays.TO_TEXT
        return None if printed is None else _modified(Call(to_text, (printed,), TEXT, position), target)
    if source.name in STRINGS and not source.is_array and context == "explicit":
        from_text = multidimensional.FROM_TEXT if target.multidimensional else arrays.FROM_TEXT
        texts = Call(from_text, (scalar,), TEXT.array(multidimensional=target.multidimensional), position)
        return coerce(texts, target, parameters, context, position)
    return None


def elements_as_text(scalar: Scalar, position: int | None) -> Scalar | None:
    """Returns an array as an array of text, or None if its elements have no cast to text."""
    name = scalar.type.name
    if name == "text":
        return scalar
    result = TEXT.array(multidimensional=scalar.type.multidimensional)
    if scalar.type.general:
        return _general(scalar, result, position)
    row = OUTPUT.get(name) or enums.conversion(scalar.type.element, TEXT) or catalogue.cast(name, "text")
    return None if row is None else Call(multidimensional.each(row, scalar.type, "text"), (scalar,), result, position)


def _row(scalar: Scalar, target: Type, parameters: Parameters, context: Context, position: int | None) -> Scalar | None:
    """Casts a row to a row with the same number of fields, or to text. Raises 42846 if a composite type has other fields."""
    source, composite = scalar.type, target.composite
    if is_row(target):
        is_same = composite is None or source.composite == composite
        if source.composite is not None and not is_same:
            return None
        if not target.fields or (is_same and [f.type for f in source.fields] == [f.type for f in target.fields]):
            return scalar
        if len(source.fields) != len(target.fields):
            number = "few" if len(source.fields) < len(target.fields) else "many"
            _check_named(source, target, f"Input has too {number} columns.", position)
            return None
        casts = [coerce(s, f.type, parameters, context, position) for s, f in zip(rows.fields(scalar), target.fields, strict=True)]
        if None in casts:
            place = casts.index(None)
            pair = f"{bare_type(source.fields[place].type)} to {bare_type(target.fields[place].type)}"
            _check_named(source, target, f"Cannot cast type {pair} in column {place + 1}.", position)
            return None
        values = [c for c in casts if c is not None]
        row = rows.row(values, [f.name for f in target.fields], position) if composite is None else rows.row_of(target, values, position)
        return rows.unless_null(scalar, row)
    if target.name not in STRINGS or target.is_array or RANKS[context] < RANKS["assignment"]:
        return None
    text = rows.of_row(scalar, lambda value: rows.unless_null(value, _row_text(value, parameters, position)))
    return coerce(text, target, parameters, context, position)


def _check_named(source: Type, target: Type, detail: str, position: int | None) -> None:
    """Raises 42846 if the type whose fields a row does not have is a composite type."""
    if target.composite is not None:
        raise CannotCoerce(f"cannot cast type {source} to {target}", detail=detail, position=position)


def _row_of_text(scalar: Scalar, target: Type, parameters: Parameters, position: int | None) -> Scalar:
    """Casts a text to a row of a composite type."""
    texts = Call(rows.TO_FIELDS, (cast(scalar, TEXT, parameters, position), Literal(len(target.fields), INT4)), TEXT.array(), position)
    fields = [Call(rows.text_of_field(number), (texts,), TEXT) for number in range(1, len(target.fields) + 1)]
    row = rows.row_of(target, [cast(text, f.type, parameters, position) for text, f in zip(fields, target.fields, strict=True)], position)
    return Case(((IsNull(scalar), Literal(None, target)),), row, target)


def _row_text(value: Scalar, parameters: Parameters, position: int | None) -> Scalar:
    """Returns the text of a row, from the texts of its fields as their types' output functions print them."""
    texts = []
    for field in rows.fields(value):
        output = None if field.type.is_array else OUTPUT.get(field.type.name)
        text = Call(output, (field,), TEXT) if output else cast(field, TEXT, parameters, position)
        texts.append(text)
    return Call(rows.TO_TEXT, (Call(catalogue.calls("ARRAY")[0], tuple(texts), TEXT.array()),), TEXT, position)


def _through_text(
    scalar: Scalar, source: Type, target: Type, parameters: Parameters, context: Context, position: int | None
) -> Scalar | None:
    """Casts char(n) and varchar to other types, and other types to them, through text."""
    if source.name == "name" and context != "explicit" and target.name not in STRINGS:
        return None
    if source.name in STRINGS[1:]:
        middle = coerce(scalar, TEXT, parameters, "implicit", position)
    elif target.name in STRINGS[1:] and (source.enum is not None or catalogue.cast(source.name, "text") is not None):
        middle = coerce(scalar, TEXT, parameters, context, position)
    else:
        return None
    if middle is None or not (target.enum is not None or target.name == "text" or catalogue.cast("text", target.name)):
        return None
    return coerce(middle, target, parameters, context, position)


def _folded(scalar: Scalar, target: Type) -> Literal | None:
    """Returns a number as a literal of another type, or None if a cast is needed.

    Literals keep plans readable.
    """
    if not isinstance(scalar, Literal) or scalar.value is None or isinstance(scalar.value, bool):
        return None
    if isinstance(scalar.value, (int, Decimal)) and target.name in ("float4", "float8") and scalar.type.name != "oid":
        try:
            return literal(str(scalar.value), target, scalar.position)
        except TailgateError:
            return None
    if isinstance(scalar.value, int) and scalar.type.name.startswith("int"):
        if target.name in ("int2", "int4", "int8", "oid"):
            try:
                return literal(str(scalar.value), target, scalar.position)
            except TailgateError:
                return None
        if target.name == "numeric":
            return Literal(Decimal(scalar.value), target, scalar.position)
    return None


def _modified(scalar: Scalar, target: Type) -> Scalar:
    """Truncates or checks a value by the target's modifiers, unless it has them already."""
    if target.general:
        return limited(scalar, target)
    if not target.modifiers or scalar.type.modifiers == target.modifiers or target.name not in MODIFIED:
        return scalar if scalar.type == target or not target.modifiers else _retyped(scalar, target)
    if isinstance(scalar, Literal) and (scalar.value is None or has_room(scalar, target)):
        return replace(scalar, type=target)
    if isinstance(scalar, Literal) and target.fields_of_interval and not target.is_array and has_all_digits(target):
        return replace(scalar, value=restricted(scalar.value, target), type=target)
    return Call(_modifying(target), (scalar,), target)


def _modifying(target: Type) -> Function:
    """Returns the cast of a value, or of each element of an array, by the target's modifiers.

    DuckDB 1.5 compares `[2.5] <= CAST(x AS DECIMAL(5, 1)[])` as `[3] <= x`, if x has no fractions.
    """
    last = last_field(target)
    function = MODIFIED[target.name] if last in ("", "second") and not has_all_digits(target) else RESTRICTED[last]
    return multidimensional.each(function, target, target.name) if target.is_array else function


def _retyped(scalar: Scalar, target: Type) -> Scalar:
    """Declares another type for a scalar if its stored form is the same, else casts it."""
    if isinstance(scalar, (Literal, Call)) and scalar.type.decimal == target.decimal:
        return replace(scalar, type=target)
    return Call(_modifying(target), (scalar,), target) if target.name in MODIFIED else scalar


def cast(scalar: Scalar, target: Type, parameters: Parameters, position: int | None) -> Scalar:
    """Returns the explicit cast of a scalar to a type. Raises 42846."""
    result = coerce(scalar, target, parameters, "explicit", position)
    if result is None:
        raise CannotCoerce(f"cannot cast type {bare_type(scalar.type)} to {target.facts.sql}{'[]' * target.is_array}", position=position)
    return result


def _place(scalar: Scalar) -> int | None:
    return getattr(scalar, "position", None)


def common(scalars: list[Scalar], places: list[int | None], what: str) -> Type:
    """Returns the common type for UNION, CASE and similar clauses, as select_common_type() does.

    Raises 42804.

    Modifiers remain if all scalars have them, as with select_common_typmod(). NULL and quoted literals take
    the type of the others, a quoted numeric with the digits of its text. If no scalar has a type, the result is text.
    """
    types = [s.type for s in scalars]
    typed = [(t, p) for t, p in zip(types, places, strict=True) if t != UNKNOWN]
    if not typed:
        return TEXT
    chosen = typed[0][0]
    for type, place in typed[1:]:
        if same(type, chosen):
            chosen = _common_row(chosen, type, place, what) if is_row(type) else chosen
            continue
        if type.facts.category != chosen.facts.category or type.is_array != chosen.is_array:
            raise DatatypeMismatch(
                f"{what} types {bare_type(chosen)} and {bare_type(type)} cannot be matched",
                position=place,
            )
        if chosen.name not in PREFERRED and implicit(chosen, catalogue_name(type)) and not implicit(type, catalogue_name(chosen)):
            chosen = type
    if chosen.name == "numeric":
        chosen = common_numeric([_written(s, chosen) for s in scalars])
    elif not is_row(chosen) and any(type != chosen for type in types):
        chosen = bare_type(chosen)
    return replace(chosen, multidimensional=any(type.multidimensional for type in types))


def _written(scalar: Scalar, chosen: Type) -> Type:
    """Returns the type of a scalar among numerics or arrays. A parameter has any digits; by earlier rules, a quoted number has no type."""
    if scalar.type != UNKNOWN or not numeric_types.may_be_general():
        return scalar.type
    if isinstance(scalar, Parameter):
        return replace(GENERAL, is_array=chosen.is_array, multidimensional=chosen.multidimensional)
    if not isinstance(scalar, Literal) or scalar.value is None or (chosen.is_array and chosen.element != NUMERIC):
        return UNKNOWN
    return numeric_types.of_array_literal(chosen) if chosen.is_array else literal(str(scalar.value), NUMERIC, scalar.position).type


def _common_row(a: Type, b: Type, place: int | None, what: str) -> Type:
    """Returns the row type whose fields have the common types of the fields of two rows. Raises 42804."""
    if len(a.fields) != len(b.fields):
        raise DatatypeMismatch(f"{what} rows with different numbers of columns cannot be matched", position=place)
    both = [(Literal(None, x.type), Literal(None, y.type)) for x, y in zip(a.fields, b.fields, strict=True)]
    fields = tuple(replace(x, type=common(list(pair), [place, place], what)) for x, pair in zip(a.fields, both, strict=True))
    return replace(a, fields=fields)


def common_numeric(types: Sequence[Type]) -> Type:
    """Returns a numeric, or array of numerics, with room for all types, or their declaration if all have the same one."""
    numbers = [t for t in types if t != UNKNOWN]
    if all(t == numbers[0] for t in numbers):
        return numbers[0]
    with numeric_types.of_elements(numbers[0].is_array):
        return replace(numeric_types.common(tuple(numbers)), is_array=numbers[0].is_array)
