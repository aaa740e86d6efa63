"""CREATE SEQUENCE, and the values that a sequence gives next.

Source: PostgreSQL 15, src/backend/commands/sequence.c (init_params, nextval_internal, do_setval).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tailgate.lake.catalog import Catalog, Sequence, Table
from tailgate.lake.errors import (
    InvalidParameterValue,
    NumericValueOutOfRange,
    ObjectNotInPrerequisiteState,
    SequenceGeneratorLimitExceeded,
    UndefinedColumn,
    WrongObjectType,
)
from tailgate.lake.types import INT8, Type
from tailgate.sql.statements.definitions import CreateSequence, SequenceOptions
from tailgate.values.numbers.integers import RANGES


def create_sequence(statement: CreateSequence, catalog: Catalog, owner: int) -> Sequence:
    """Returns the item of a sequence. Raises 22023, 42P01, 42703, 42809, 55000."""
    schema = catalog.home(statement.name)
    catalog.check_new(statement.name.name, schema)
    item = with_options(statement.name.name, statement.options, catalog)
    if statement.options.owner is not None and statement.options.owner[1]:
        item = _owned(item, statement.options, schema.id, owner, catalog)
    return replace(item, schema=schema.id, owner=owner)


def with_options(name: str, options: SequenceOptions, catalog: Catalog) -> Sequence:
    """Returns a new sequence with these options. Raises 22023."""
    type = options.type or INT8
    kind = _kind(type)
    low, high = RANGES[kind]
    increment = 1 if options.increment is None else options.increment
    if increment == 0:
        raise InvalidParameterValue("INCREMENT must not be zero")
    maximum = options.maximum if options.maximum is not None else high if increment > 0 else -1
    minimum = options.minimum if options.minimum is not None else 1 if increment > 0 else low
    for word, bound in (("MAXVALUE", maximum), ("MINVALUE", minimum)):
        if not low <= bound <= high:
            raise InvalidParameterValue(f"{word} ({bound}) is out of range for sequence data type {type}")
    if minimum >= maximum:
        raise InvalidParameterValue(f"MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})")
    start = options.start if options.start is not None else minimum if increment > 0 else maximum
    if start < minimum:
        raise InvalidParameterValue(f"START value ({start}) cannot be less than MINVALUE ({minimum})")
    if start > maximum:
        raise InvalidParameterValue(f"START value ({start}) cannot be greater than MAXVALUE ({maximum})")
    cache = 1 if options.cache is None else options.cache
    if cache <= 0:
        raise InvalidParameterValue(f"CACHE ({cache}) must be greater than zero")
    return Sequence(
        id=catalog.next_id,
        name=name,
        type=kind,
        start=start,
        increment=increment,
        minimum=minimum,
        maximum=maximum,
        cache=cache,
        cycle=bool(options.cycle),
        position=start,
    )


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
