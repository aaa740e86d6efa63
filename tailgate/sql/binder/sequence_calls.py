"""Calls of nextval, currval, lastval and setval.

A call is allowed where it is known how often PostgreSQL evaluates it: in VALUES, SET, DEFAULT and the output of SELECT
(`sql.plan.session_calls`). currval and lastval, which have one value in most statements, are allowed in other clauses, too. If the
name of the sequence is a literal, its id becomes part of the plan. A computed name is looked up when the call is evaluated.

Source: PostgreSQL 15, src/backend/commands/sequence.c; "Sequence Manipulation Functions".
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.lake.catalog import Catalog, Sequence
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, InvalidName, UndefinedColumn, UndefinedFunction, UndefinedTable, WrongObjectType
from tailgate.lake.types import BOOL, INT8, OID, TEXT, Type
from tailgate.sql.authorization import OR, Demand
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.types.coercion import bare_type, coerce
from tailgate.sql.binder.types.literals import literal
from tailgate.sql.binder.types.overloads import NO_MATCH
from tailgate.sql.grammar.names import position
from tailgate.sql.lexer.tokens import tokens
from tailgate.sql.plan import Call, Literal, Scalar
from tailgate.sql.plan.session_calls import SEQUENCE_FUNCTIONS, STABLE_FUNCTIONS

CLAUSES = ("SELECT", "VALUES", "UPDATE", "DEFAULT expressions")
CLAUSES_OF_CONSTANTS = ("SELECT", "VALUES", "UPDATE", "WHERE", "HAVING", "JOIN conditions", "ORDER BY", "RETURNING")
ARGUMENTS = {"nextval": (1,), "currval": (1,), "lastval": (0,), "setval": (2, 3)}
PRIVILEGES = {"nextval": ("USAGE", "UPDATE"), "currval": ("USAGE", "SELECT"), "setval": ("UPDATE",)}
HINT = "Call it in VALUES, in SET, in a DEFAULT, in the output of INSERT … SELECT or in a SELECT without FROM."


def bind_sequence_call(binder: ExpressionBinder, name: str, nodes: list[exp.Expr], at: int | None) -> Scalar:
    """Binds a call. Raises 0A000, 42883, 42P01, 42809."""
    if len(nodes) not in ARGUMENTS[name]:
        types = ", ".join(str(bare_type(binder.bind(n).type)) for n in nodes)
        raise UndefinedFunction(f"function {name}({types}) does not exist", hint=NO_MATCH, position=at)
    in_subquery = binder.level.outer is not None
    is_constant = name in STABLE_FUNCTIONS and binder.clause in CLAUSES_OF_CONSTANTS and (in_subquery or binder.clause not in CLAUSES)
    if binder.view or (in_function := _is_in_function(binder)) or (in_subquery and not is_constant):
        place = "a view" if binder.view else "a function" if in_function else "a subquery"
        raise FeatureNotSupported(f"{name} in {place} is not supported", hint=HINT, position=at)
    if binder.clause not in CLAUSES and not is_constant:
        raise FeatureNotSupported(f"{name} in {binder.clause} is not supported", hint=HINT, position=at)
    arguments: list[Scalar] = []
    if nodes:
        sequence = _sequence(binder, name, nodes[0], at)
        arguments.append(sequence)
        if is_constant and not isinstance(sequence, Literal):
            raise FeatureNotSupported(f"{name} of a computed name in {binder.clause} is not supported", hint=HINT, position=at)
        if isinstance(sequence, Literal) and isinstance(sequence.value, int):
            binder.level.names.demands[Demand(OR.join(PRIVILEGES[name]), sequence.value, binder.level.names.readers)] = None
    if name == "setval":
        arguments += [_argument(binder, node, type, at) for node, type in zip(nodes[1:], (INT8, BOOL), strict=False)]
        arguments += [Literal(True, BOOL)] * (3 - len(arguments))
    return Call(STABLE_FUNCTIONS[name] if is_constant else SEQUENCE_FUNCTIONS[name], tuple(arguments), INT8, at)


def _is_in_function(binder: ExpressionBinder) -> bool:
    while binder.level.arguments is None and binder.level.outer is not None:
        binder = binder.level.outer.binder
    return binder.level.arguments is not None


def _argument(binder: ExpressionBinder, node: exp.Expr, type: Type, at: int | None) -> Scalar:
    value = binder.bind(node)
    scalar = coerce(value, type, binder.parameters)
    if scalar is None:
        raise UndefinedFunction(f"function setval(unknown, {bare_type(value.type)}) does not exist", hint=NO_MATCH, position=at)
    return scalar


def _sequence(binder: ExpressionBinder, function: str, node: exp.Expr, call_at: int | None) -> Scalar:
    """Returns the id of the sequence that a literal names, or a computed name, as text."""
    if isinstance(node, exp.Cast) and node.args["to"].text("kind") in ("regclass", "text"):
        node = node.this
    at = position(node)
    if node.name == "pg_get_serial_sequence" and len(node.expressions) == 2 and all(_is_text(argument) for argument in node.expressions):
        table, column = (argument.this for argument in node.expressions)
        return Literal(_owned(table, column, binder.level.names.catalog), INT8)
    if isinstance(node, exp.Literal) and node.is_string:
        return Literal(sequence_id(node.this, binder.level.names.catalog, at), INT8)
    if binder.clause == "DEFAULT expressions":
        hint = "Write the name of the sequence as a literal."
        raise FeatureNotSupported(f"{function} of a computed name in DEFAULT is not supported", hint=hint, position=at)
    value = binder.bind(node)
    scalar = coerce(value, TEXT, binder.parameters)
    if scalar is None:
        raise UndefinedFunction(f"function {function}({bare_type(value.type)}) does not exist", hint=NO_MATCH, position=call_at)
    return scalar


def sequence_id(text: str, catalog: Catalog, at: int | None = None) -> int:
    """Returns the id of the sequence that a text names. A number is an id, as in PostgreSQL's regclass.

    Raises 3F000, 42P01, 42809, 22003.
    """
    if not (text.isascii() and text.isdecimal()):
        return _found(text, catalog, at).id
    id = literal(text, OID, at).value
    assert isinstance(id, int)
    return id


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _owned(table: str, column: str, catalog: Catalog) -> int:
    """Returns the id of the sequence that a column owns. Raises 42P01, 42703, 0A000."""
    item = catalog.relation(sequence_name(table))
    if column not in [c.name for c in item.columns]:
        raise UndefinedColumn(f'column "{column}" of relation "{item.name}" does not exist')
    sequence = next((s for s in catalog.each(Sequence) if s.column == column and s.depends == (item.id,)), None)
    if sequence is None:
        detail = f'Column "{column}" of relation "{item.name}" owns no sequence.'
        raise FeatureNotSupported("a call for NULL in place of a sequence is not supported", detail=detail)
    return sequence.id


def _found(text: str, catalog: Catalog, at: int | None) -> Sequence:
    """Returns the sequence that a text names. Raises 3F000, 42P01, 42809."""
    name = sequence_name(text)
    item = catalog.find(name)
    if item is None:
        catalog.check_schema(name)
        raise UndefinedTable(f'relation "{name}" does not exist', position=at)
    if not isinstance(item, Sequence):
        raise WrongObjectType(f'"{item.name}" is not a sequence')
    return item


def with_ids(default: str, catalog: Catalog) -> str:
    """Returns the text of a DEFAULT with the ids of sequences in place of their names, which may change.

    `nextval('s')` becomes `nextval('16400'::regclass)`.
    """
    row, edits = tokens(default), []
    for call, sign, argument, behind in zip(row, row[1:], row[2:], row[3:], strict=False):
        if call.value == "nextval" and sign.value == "(" and argument.kind == "string" and not argument.value.isdecimal():
            id = _found(argument.value, catalog, argument.position).id
            edits.append((argument.position, argument.end, f"'{id}'" + ("" if behind.value == "::" else "::regclass")))
    for begin, end, new in reversed(edits):
        default = default[:begin] + new + default[end:]
    return default


def sequence_name(text: str) -> Name:
    """Returns the name in a text, as in PostgreSQL's regclass.

    >>> sequence_name('Public."S"')
    Name(name='S', schema='public', position=None)
    """
    parts = [t for t in tokens(text) if t.kind != "end"]
    names = [t.value for t in parts[::2]]
    if not 1 <= len(names) <= 2 or len(parts) % 2 == 0 or any(t.kind not in ("word", "quoted") for t in parts[::2]):
        raise InvalidName("invalid name syntax")
    return Name(names[-1], names[0] if len(names) > 1 else None)
