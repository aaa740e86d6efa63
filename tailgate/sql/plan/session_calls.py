"""Calls whose values depend on the session: of sequences, of advisory locks, and of functions such as current_user.

No engine evaluates nextval, currval, lastval, setval, the columns of a sequence in FROM, and these functions. The gateway does, before
the query that uses their values:

    current_user, the columns of a sequence        each becomes a parameter behind those of the statement, wherever it is
    currval and lastval in WHERE, in subqueries    the same, unless the statement moves the sequence
    evaluated once (VALUES, SELECT without FROM)   each call becomes such a parameter
    evaluated for each row of a source             the rows of the source get a column for each call of a sequence
    evaluated for some rows (in CASE)              the rows of the source get a column with the condition, too

A call elsewhere stays in the plan, and the renderer refuses it by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import BOOL, INT8, Field, Type
from tailgate.sql.functions.advisory_locks import ACTIONS
from tailgate.sql.functions.entry import Function, strict
from tailgate.sql.plan.grouping import ONE_ROW
from tailgate.sql.plan.relations import Project, Relation, Scan, Values
from tailgate.sql.plan.rewriting import rebuild, walk
from tailgate.sql.plan.scalars import Call, Case, Coalesce, Column, IsNull, Literal, Not, Parameter, Scalar
from tailgate.sql.plan.traversal import bottom_up, scalars_of, with_scalars
from tailgate.sql.plan.traversal import walk as nodes
from tailgate.sql.plan.writes import INCOMING, PLACE
from tailgate.values.numbers.integers import RANGES

# by name, with the number of arguments: the functions as plans contain them
SEQUENCE_FUNCTIONS = {
    name: Function(name, arguments, "int8", volatility="volatile", by_session=True)
    for name, arguments in {
        "nextval": ("regclass",),
        "currval": ("regclass",),
        "lastval": (),
        "setval": ("regclass", "int8", "bool"),
    }.items()
}
# the same where they have one value in a statement
STABLE_FUNCTIONS = {name: replace(SEQUENCE_FUNCTIONS[name], volatility="stable") for name in ("currval", "lastval")}
# the columns of a sequence's row
ROW = tuple(Field(name, type, False) for name, type in (("last_value", INT8), ("log_cnt", INT8), ("is_called", BOOL)))
ROW_FUNCTIONS = {f.name: Function(f.name, ("regclass",), f.type.name, volatility="volatile") for f in ROW}
# the outcome of current_setting, as the gateway provides it: '=' and the value, or an error for the rows that need the value
SETTING = Function(
    "current_setting",
    ("text",),
    "text",
    duckdb=strict("CASE WHEN starts_with({0}, '=') THEN substr({0}, 2) ELSE error({0}) END", 1),
    volatility="stable",
)
HASHES = ("hashtext", "hashtextextended")
Kind: TypeAlias = Callable[[Function], bool]  # whether a function is of a kind


@dataclass(frozen=True, slots=True)
class SessionCall:
    """A call, or a column of a sequence's row. `sequence`: the id, 0 for lastval, for functions that are not about sequences, and if
    the name is computed: then it is the first of `arguments`.

    `arguments`: the others, of setval, advisory locks and current_setting: constants, or columns of the source. `conditional`: the
    only argument is the condition under which the call is evaluated for a row; otherwise its value is NULL.
    """

    name: str
    sequence: int
    arguments: tuple[Scalar, ...] = ()
    conditional: bool = False

    @property
    def may_fail(self) -> bool:
        """Returns whether the call is current_setting without missing_ok."""
        return self.name == SETTING.name and len(self.arguments) == 1

    @property
    def is_reservable(self) -> bool:
        """Returns whether the call is nextval of a known sequence, whose numbers can be reserved for all rows at once."""
        return self.name == "nextval" and self.sequence != 0


@dataclass(frozen=True, slots=True)
class Numbered:
    """A plan whose calls are separated.

    `relation` reads the values of `calls` from parameters or, with a `source`, from the columns of INCOMING behind those of the source.
    Both read the values of `constants` from parameters, which come first.
    """

    relation: Relation
    calls: tuple[SessionCall, ...] = ()
    source: Relation | None = None
    constants: tuple[SessionCall, ...] = ()

    @property
    def all_calls(self) -> tuple[SessionCall, ...]:
        """Returns all calls, in the order of their parameters."""
        return (*self.constants, *self.calls)


def row_of(sequence: int, position: int | None) -> Relation:
    """Returns the plan of a sequence in FROM, one row."""
    calls = tuple(Call(ROW_FUNCTIONS[field.name], (Literal(sequence, INT8),), field.type, position) for field in ROW)
    return Project(ONE_ROW, calls, ROW)


def separated(relation: Relation, first: int) -> Numbered:
    """Returns the plan without calls that depend on the session. `first`: the number of the first new parameter.

    The rows of sequences stay in a plan that also has calls for each row of a source.
    """
    if not any(_calls(*_scalars(node), kind=_is_stable) for node in nodes(relation)):
        return _separated(relation, first)
    if moves_constants(relation):
        return Numbered(relation)
    constants: list[SessionCall] = []

    def over(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Call) and _is_stable(scalar.function) and _is_simple(call := _session_call(scalar)):
            constants.append(call)
            value = Parameter(first + len(constants) - 1, scalar.type)
            return Call(SETTING, (value,), scalar.type) if call.may_fail else value
        return rebuild(scalar, over)

    def without(node: Relation) -> Relation:
        if not _calls(*_scalars(node), kind=_is_stable):
            return node
        if isinstance(node, Values):
            return replace(node, rows=tuple(tuple(map(over, row)) for row in node.rows))
        return with_scalars(node, over)

    rest = bottom_up(relation, without)
    numbered = _separated(rest, first + len(constants))
    if numbered.source is not None and any(call.name in ROW_FUNCTIONS for call in constants):
        return Numbered(relation)
    return replace(numbered, constants=tuple(constants))


def moves_constants(*relations: Relation) -> bool:
    """Returns whether the plans of a statement call nextval or setval for a sequence whose value they also take as constant."""
    every = (node for relation in relations for node in nodes(relation))
    parts = (part for node in every for scalar in _scalars(node) for part in walk(scalar) if isinstance(part, Call))
    calls = {(part.function, _session_call(part).sequence) for part in parts if part.function.name in SEQUENCE_FUNCTIONS}
    moved = {sequence for function, sequence in calls if function.name in ("nextval", "setval")}
    constant = {sequence for function, sequence in calls if function in STABLE_FUNCTIONS.values()}
    return bool(moved & constant or (moved and 0 in constant) or (constant and 0 in moved))


def _separated(relation: Relation, first: int) -> Numbered:
    """Returns the plan without calls of functions."""
    calls: list[SessionCall] = []
    match relation:
        case Values(rows=rows) if _calls(*(s for row in rows for s in row)):
            to_parameter = _parameters(calls, first)
            values = tuple(tuple(map(to_parameter, row)) for row in rows)
            if not all(map(_is_simple, calls)):
                return _for_each_row(Project(ONE_ROW, rows[0], relation.columns)) if len(rows) == 1 else Numbered(relation)
            return Numbered(replace(relation, rows=values), tuple(calls))
        case Project(input=input, expressions=expressions) if _calls(*expressions):
            if input == ONE_ROW:
                once = tuple(map(_parameters(calls, first), expressions))
                if all(map(_is_simple, calls)):
                    return Numbered(replace(relation, expressions=once), tuple(calls))
            return _for_each_row(relation)
        case Project(input=Project() as input):
            inner = _separated(input, first)
            return replace(inner, relation=replace(relation, input=inner.relation)) if inner.calls else Numbered(relation)
    return Numbered(relation)


def _for_each_row(relation: Project) -> Numbered:
    """Returns a projection whose calls are separated. Computed arguments of setval are columns of the source.

    Raises 0A000 for advisory locks: a thread that runs a query must not wait for them.
    """
    for part in (part for scalar in relation.expressions for part in walk(scalar)):
        if isinstance(part, Call) and _is_lock(part.function):
            hint = "Call it in a SELECT without FROM, with literals or parameters."
            raise FeatureNotSupported(f"{part.function.name} of a computed key or for each row is not supported", hint=hint)
    calls: list[SessionCall] = []
    input = relation.input
    columns = tuple(c for c in input.columns if c is not PLACE)
    _outputs(relation, calls, 0)
    if not all(map(_is_simple, calls)):
        computed = tuple(argument for call in calls for argument in call.arguments)
        every = tuple(Column(i, c.type) for i, c in enumerate(columns))
        fields = tuple(Field(f"argument{i}", argument.type) for i, argument in enumerate(computed))
        places = iter(range(len(columns), len(columns) + len(computed)))
        calls = [replace(call, arguments=tuple(Column(next(places), a.type) for a in call.arguments)) for call in calls]
        columns = (*columns, *fields)
        input = Project(input, (*every, *computed), columns)
    outputs = _outputs(relation, [], len(columns))
    numbers = tuple(Field(f"number{i}", INT8, call.conditional) for i, call in enumerate(calls))
    incoming = Scan(INCOMING, (*columns, *numbers, PLACE), (len(columns) + len(numbers),), "incoming")
    return Numbered(replace(relation, input=incoming, expressions=outputs), tuple(calls), input)


def _outputs(relation: Project, calls: list[SessionCall], width: int) -> tuple[Scalar, ...]:
    """Returns the expressions with columns behind the first `width` in place of their calls, which it appends to `calls`."""
    return tuple(map(_replaced(calls, lambda number, type: Column(width + number, type)), relation.expressions))


def _is_simple(call: SessionCall) -> bool:
    """Returns whether the arguments are literals, parameters, these as another integer type, or hashes of them."""
    return all(map(_is_constant, call.arguments))


def is_of_constants(function: Function) -> bool:
    """Returns whether the gateway computes a function of literals and parameters itself: `hashtext('job' || $1)` as the key of a lock."""
    return function.name in HASHES or (function.name == "||" and function.arguments == ("text", "text"))


def _is_constant(scalar: Scalar) -> bool:
    if isinstance(scalar, Call) and is_of_constants(scalar.function):
        return all(map(_is_constant, scalar.arguments))
    if isinstance(scalar, Call) and scalar.function.kind == "cast" and {scalar.type.name, scalar.arguments[0].type.name} <= RANGES.keys():
        return _is_constant(scalar.arguments[0])
    return isinstance(scalar, Literal | Parameter)


def merged(outer: Project) -> Relation:
    """Returns the projection of a projection that has calls as one projection, so that `separated` finds them."""
    inner = outer.input
    if not isinstance(inner, Project) or not _calls(*inner.expressions):
        return outer
    expressions = inner.expressions

    def over(scalar: Scalar) -> Scalar:
        return expressions[scalar.index] if isinstance(scalar, Column) else rebuild(scalar, over)

    return replace(outer, input=inner.input, expressions=tuple(map(over, outer.expressions)))


def _is_called(function: Function) -> bool:
    return function.by_session and function.volatility == "volatile"


def _is_lock(function: Function) -> bool:
    return function.by_session and function.name in ACTIONS


def _is_stable(function: Function) -> bool:
    """Returns whether the function has one value in a statement."""
    return function in ROW_FUNCTIONS.values() or (function.by_session and function.volatility == "stable")


def _calls(*scalars: Scalar, kind: Kind = _is_called) -> bool:
    computed = (scalar for scalar in scalars if not isinstance(scalar, Literal | Parameter | Column))
    return any(isinstance(part, Call) and kind(part.function) for scalar in computed for part in walk(scalar))


def _scalars(node: Relation) -> Iterable[Scalar]:
    return (scalar for row in node.rows for scalar in row) if isinstance(node, Values) else scalars_of(node)


def _parameters(calls: list[SessionCall], first: int) -> Callable[[Scalar], Scalar]:
    return _replaced(calls, lambda number, type: Parameter(first + number, type))


def _session_call(call: Call) -> SessionCall:
    if call.function.arguments[:1] != ("regclass",):
        return SessionCall(call.function.name, 0, call.arguments)
    sequence, *arguments = call.arguments
    if isinstance(sequence, Literal) and isinstance(sequence.value, int):
        return SessionCall(call.function.name, sequence.value, tuple(arguments))
    return SessionCall(call.function.name, 0, call.arguments)


def _replaced(calls: list[SessionCall], value: Callable[[int, Type], Scalar]) -> Callable[[Scalar], Scalar]:
    """Returns a function that appends the calls in a scalar to `calls` and replaces each by `value` of its number and type.

    It leaves those in CASE and COALESCE that have arguments, or that are reached if a volatile function has some value.
    """

    def over(scalar: Scalar, condition: Scalar | None = None) -> Scalar:
        if isinstance(scalar, Case) and not any(_is_volatile(test) for test, _ in scalar.branches):
            return of_case(scalar, condition)
        if isinstance(scalar, Coalesce) and not any(map(_is_volatile, scalar.arguments[:-1])):
            return of_coalesce(scalar, condition)
        if isinstance(scalar, Case | Coalesce):
            return scalar
        if isinstance(scalar, Call) and _is_called(scalar.function):
            call = _session_call(scalar)
            if condition is not None and call.arguments:
                return scalar
            calls.append(call if condition is None else replace(call, arguments=(condition,), conditional=True))
            return value(len(calls) - 1, scalar.type)
        return rebuild(scalar, lambda part: over(part, condition))

    def of_case(case: Case, condition: Scalar | None) -> Case:
        tests = tuple(test for test, _ in case.branches)
        values = tuple(over(result, _reached(condition, tests[:i], test)) for i, (test, result) in enumerate(case.branches))
        otherwise = over(case.otherwise, _reached(condition, tests, Literal(True, BOOL)))
        return replace(case, branches=tuple(zip(tests, values, strict=True)), otherwise=otherwise)

    def of_coalesce(coalesce: Coalesce, condition: Scalar | None) -> Coalesce:
        *earlier, last = coalesce.arguments
        present = tuple(Not(IsNull(argument)) for argument in earlier)
        return replace(coalesce, arguments=(*earlier, over(last, _reached(condition, present, Literal(True, BOOL)))))

    return over


def _reached(outer: Scalar | None, before: tuple[Scalar, ...], test: Scalar) -> Scalar:
    """Returns whether the branch of a CASE with this test is evaluated. `outer`: the condition under which the CASE is."""
    no = Literal(False, BOOL)
    branch = Case((*((earlier, no) for earlier in before), (test, Literal(True, BOOL))), no, BOOL)
    return branch if outer is None else Case(((outer, branch),), no, BOOL)


def _is_volatile(scalar: Scalar) -> bool:
    return any(isinstance(part, Call) and part.function.volatility == "volatile" for part in walk(scalar))
