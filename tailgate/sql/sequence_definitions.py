"""CREATE and ALTER SEQUENCE, and the values that a sequence gives next.

Source: PostgreSQL 15, src/backend/commands/sequence.c (init_params, nextval_internal, do_setval).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tailgate.lake.catalog import Catalog, Sequence, Table
from tailgate.lake.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    NumericValueOutOfRange,
    ObjectNotInPrerequisiteState,
    SequenceGeneratorLimitExceeded,
    UndefinedColumn,
    WrongObjectType,
)
from tailgate.lake.types import Type
from tailgate.sql.statements.definitions import AlterSequence, CreateSequence, SequenceOptions
from tailgate.values.numbers.integers import RANGES


def create_sequence(statement: CreateSequence, catalog: Catalog, owner: int) -> Sequence:
    """Returns the item of a sequence. Raises 22023, 42P01, 42703, 42809, 55000."""
    schema = catalog.home(statement.name)
    catalog.check_new(statement.name.name, schema)
    item = with_options(statement.name.name, statement.options, catalog)
    if statement.options.owner is not None and statement.options.owner[1]:
        item = _owned(item, statement.options, schema.id, owner, catalog)
    return replace(item, schema=schema.id, owner=owner)


def alter_sequence(statement: AlterSequence, sequence: Sequence, catalog: Catalog) -> Sequence:
    """Returns the sequence with other options. Raises 22023, 0A000 and the errors of OWNED BY."""
    item, options = altered(sequence, statement.options), statement.options
    if options.owner is None:
        return item
    if sequence.column and sequence.column in (table := catalog.expect(Table, sequence.depends[0])).identity:
        detail = f'Sequence "{sequence.name}" is linked to table "{table.name}".'
        raise FeatureNotSupported("cannot change ownership of identity sequence", detail=detail)
    if not options.owner[1]:
        return replace(item, depends=(), column="")
    return _owned(item, options, item.schema, item.owner, catalog)


def with_options(name: str, options: SequenceOptions, catalog: Catalog) -> Sequence:
    """Returns a new sequence with these options. Raises 22023."""
    new = Sequence(id=catalog.next_id, name=name, type="int8", start=1, increment=1, minimum=1, maximum=1, cache=1, cycle=False, position=1)
    item = _with_bounds(new, options, new=True)
    start = options.start if options.start is not None else item.minimum if item.increment > 0 else item.maximum
    return _with_start(item, options, start, start, called=False)


def altered(sequence: Sequence, options: SequenceOptions) -> Sequence:
    """Returns a sequence with other options. Reserved values are not used any more. Raises 22023."""
    item = _with_bounds(sequence, options, new=False)
    start = item.start if options.start is None else options.start
    position = (start if options.restart is None else options.restart) if options.restarts else item.position
    item = _with_start(item, options, start, position, called=item.called and not options.restarts)
    return replace(item, series=item.series + 1)


def restarted(sequence: Sequence) -> Sequence:
    """Returns the sequence after TRUNCATE … RESTART IDENTITY."""
    return altered(sequence, SequenceOptions(restarts=True))


def _with_bounds(sequence: Sequence, options: SequenceOptions, *, new: bool) -> Sequence:
    """Returns the sequence with another type, increment, minimum and maximum. `new`: options that are not set have defaults."""
    type = options.type or Type(sequence.type)
    kind = _kind(type)
    low, high = RANGES[kind]
    increment = sequence.increment if options.increment is None else options.increment
    if increment == 0:
        raise InvalidParameterValue("INCREMENT must not be zero")
    at_low, at_high = (not new and options.type is not None and n in RANGES[sequence.type] for n in (sequence.minimum, sequence.maximum))
    maximum, minimum = sequence.maximum, sequence.minimum
    if options.maximum is not None:
        maximum = options.maximum
    elif new or at_high or "maximum" in options.unbounded:
        maximum = high if increment > 0 or at_high else -1
    if options.minimum is not None:
        minimum = options.minimum
    elif new or at_low or "minimum" in options.unbounded:
        minimum = low if increment < 0 or at_low else 1
    for word, bound in (("MAXVALUE", maximum), ("MINVALUE", minimum)):
        if not low <= bound <= high:
            raise InvalidParameterValue(f"{word} ({bound}) is out of range for sequence data type {type}")
    if minimum >= maximum:
        raise InvalidParameterValue(f"MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})")
    cycle = sequence.cycle if options.cycle is None else options.cycle
    return replace(sequence, type=kind, increment=increment, minimum=minimum, maximum=maximum, cycle=cycle)


def _with_start(item: Sequence, options: SequenceOptions, start: int, position: int, *, called: bool) -> Sequence:
    """Returns the sequence with another start value, position and cache."""
    for word, value in (("START", start), ("RESTART", position)):
        if value < item.minimum:
            raise InvalidParameterValue(f"{word} value ({value}) cannot be less than MINVALUE ({item.minimum})")
        if value > item.maximum:
            raise InvalidParameterValue(f"{word} value ({value}) cannot be greater than MAXVALUE ({item.maximum})")
    cache = item.cache if options.cache is None else options.cache
    if cache <= 0:
        raise InvalidParameterValue(f"CACHE ({cache}) must be greater than zero")
    return replace(item, start=start, position=position, called=called, cache=cache)


def reserved(sequence: Sequence, count: int) -> tuple[Sequence, int, int]:
    """Returns the sequence after at most `count` more values, the first of them, and their number.

    Raises 2200H if there is none.
    """
    s, up = sequence, sequence.increment > 0
    first = s.position + s.increment if s.called else s.position
    bound = s.maximum if up else s.minimum
    if first > bound if up else first < bound:
        if not s.cycle:
            raise SequenceGeneratorLimitExceeded(
                f'nextval: reached {"maximum" if up else "minimum"} value of sequence "{s.name}" ({bound})'
            )
        first = s.minimum if up else s.maximum
    number = min(count, (bound - first) // s.increment + 1)
    return replace(s, position=first + (number - 1) * s.increment, called=True), first, number


def advanced(sequence: Sequence, count: int) -> Sequence:
    """Returns the sequence after `count` more values. Raises 2200H."""
    while count:
        sequence, _, number = reserved(sequence, count)
        count -= number
    return sequence


def numbers(sequence: Sequence, count: int) -> tuple[Sequence, list[int]]:
    """Returns the sequence after `count` more values, and these values. Raises 2200H."""
    values: list[int] = []
    while len(values) < count:
        sequence, first, number = reserved(sequence, count - len(values))
        values += range(first, first + number * sequence.increment, sequence.increment)
    return sequence, values


def moved(sequence: Sequence, value: int, *, called: bool) -> Sequence:
    """Returns the sequence after setval. Raises 22003."""
    if not sequence.minimum <= value <= sequence.maximum:
        bounds = f"({sequence.minimum}..{sequence.maximum})"
        raise NumericValueOutOfRange(f'setval: value {value} is out of bounds for sequence "{sequence.name}" {bounds}')
    return replace(sequence, position=value, called=called, series=sequence.series + 1)


def _kind(type: Type) -> Literal["int2", "int4", "int8"]:
    match type.name:
        case "int2" | "int4" | "int8" as kind if not type.is_array:
            return kind
    raise InvalidParameterValue("sequence type must be smallint, integer, or bigint")


def _owned(item: Sequence, options: SequenceOptions, schema: int, owner: int, catalog: Catalog) -> Sequence:
    """Returns the sequence with the column of OWNED BY as its owner."""
    assert options.owner is not None
    name, column = options.owner
    table = catalog.relation(replace(name, position=None))
    if not isinstance(table, Table):
        raise WrongObjectType(f'sequence cannot be owned by relation "{table.name}"', detail="This operation is not supported for views.")
    if table.owner != owner:
        raise ObjectNotInPrerequisiteState("sequence must have same owner as table it is linked to")
    if table.schema != schema:
        raise ObjectNotInPrerequisiteState("sequence must be in same schema as table it is linked to")
    if column not in [c.name for c in table.columns]:
        raise UndefinedColumn(f'column "{column}" of relation "{table.name}" does not exist')
    return replace(item, depends=(table.id,), column=column)
