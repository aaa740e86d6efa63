"""User-defined SQL functions: the function's body, over the call's arguments, replaces the call.

    f(x + 1)   with f(a int) RETURN a * a        ──►  (x + 1) * (x + 1)
    g(u.id)    with g(i int) RETURN (SELECT …)   ──►  a subquery that reads u.id
    FROM h(3)  with h(n int) RETURNS TABLE …     ──►  the body as an item of FROM, LATERAL

The body is bound at a separate `Level`. There, argument names and $n stand for the scalars of the
call, and outer names are not visible. Other modules need not know about user-defined functions:
they see only the inlined expressions and subqueries.

Source: PostgreSQL 15, FuncnameGetCandidates() in namespace.c, "Calling Functions",
inline_function() in clauses.c.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from sqlglot import exp

from tailgate.lake.catalog import Function as Routine
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import (
    AmbiguousFunction,
    FeatureNotSupported,
    InvalidFunctionDefinition,
    ProgramLimitExceeded,
    SyntaxError_,
    TailgateError,
    UndefinedFunction,
)  # fmt: skip
from tailgate.lake.types import FACTS, INT8, Field, Type
from tailgate.sql.authorization import EXECUTE, Demand
from tailgate.sql.binder.context import Closure, ExpressionBinder, Level
from tailgate.sql.binder.expressions.constructors import array_of
from tailgate.sql.binder.grouping import aggregate, windowed
from tailgate.sql.binder.relation_names import Names
from tailgate.sql.binder.scope import Named, Scope, Table
from tailgate.sql.binder.types.coercion import bare_type, catalogue_name, coerce
from tailgate.sql.binder.types.overloads import CASTS_HINT, NO_MATCH, choose
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.functions import catalogue
from tailgate.sql.functions.entry import Function
from tailgate.sql.grammar.names import position
from tailgate.sql.grammar.parser import parse_expression, parse_query
from tailgate.sql.plan import (
    Case,
    Column,
    Distinct,
    Filter,
    IsNull,
    Limit,
    Literal,
    Not,
    Or,
    Project,
    Reduce,
    Relation,
    Scalar,
    Sort,
    Values,
)  # fmt: skip
from tailgate.sql.plan.rewriting import conjunction, parts
from tailgate.sql.plan.subqueries import Dependent, Subquery, as_relation, as_scalar

INLINED_MAX = 20_000  # parts of an inlined expression; nested functions that use an argument twice grow exponentially
CLAUSE = "SQL functions"  # the clause of function bodies, in error messages
MISMATCH = "return type mismatch in function declared to return %s"


def named_functions(binder: ExpressionBinder, node: exp.Anonymous) -> tuple[Routine, ...]:
    """Returns the user-defined functions with the name of a call."""
    return binder.level.names.catalog.functions(Name(str(node.this), node.meta.get("schema")))


def bind_routine(binder: ExpressionBinder, node: exp.Anonymous, items: tuple[Routine, ...]) -> Scalar:
    """Binds a call in an expression and returns its value. Raises 42883, 42725, 0A000."""
    function, arguments = _chosen(binder, node, items)
    if function.rows is not None:
        raise FeatureNotSupported(
            f"set-returning functions are not supported in {binder.clause}",
            hint=f"Put it into FROM, as in FROM t, {function.name}(t.x).",
            position=position(node),
        )
    result = value(_inside(binder, function, arguments, position(node)), function, tree_of(function.query))
    if _size(result) > INLINED_MAX:
        raise ProgramLimitExceeded(f"the expression that function {function.name} becomes is too large", position=position(node))
    return result


def bind_rows(binder: ExpressionBinder, node: exp.Anonymous, items: tuple[Routine, ...]) -> tuple[Relation, tuple[Field, ...], bool]:
    """Binds a call in FROM.

    Returns its rows, its columns, and whether the function's columns are unnamed.
    """
    function, arguments = _chosen(binder, node, items)
    inner = _inside(binder, function, arguments, position(node))
    if function.rows is None:
        columns = (Field(function.name, function.returns),)
        return Project(Values(((),), ()), (value(inner, function, tree_of(function.query)),), columns), columns, True
    return rows(inner, function, tree_of(function.query)), function.rows, not function.rows[0].name


def _size(scalar: Scalar) -> int:
    """Returns the number of parts of a scalar; an aggregate or window function counts as one."""
    return 1 if aggregate(scalar) is not None or windowed(scalar) is not None else 1 + sum(map(_size, parts(scalar)))


# --- choice of the function -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Candidate:
    """A function whose argument names and count fit a call.

    `places` has, for each argument of the call, its index among the function's arguments. `row` is
    the function as `choose` takes it. `expanded`: the last arguments of the call become the array of a VARIADIC function.
    """

    routine: Routine
    places: tuple[int, ...]
    row: Function
    expanded: bool = False


def _chosen(binder: ExpressionBinder, node: exp.Anonymous, items: tuple[Routine, ...]) -> tuple[Routine, tuple[Scalar, ...]]:
    """Returns the function that a call refers to, and its arguments.

    The arguments are cast to the declared types; defaults replace omitted ones.
    """
    name, at = str(node.this), position(node)
    nodes: list[exp.Expr] = []
    names: list[str | None] = []
    has_array = bool(node.expressions) and isinstance(node.expressions[-1], exp.Variadic)
    for argument in (n.this if isinstance(n, exp.Variadic) else n for n in node.expressions):
        if isinstance(argument, exp.Kwarg):
            if argument.this.name in names:
                raise SyntaxError_(f'argument name "{argument.this.name}" used more than once', position=position(argument))
            names.append(argument.this.name)
            nodes.append(argument.args["expression"])
            continue
        if names and names[-1] is not None:
            raise SyntaxError_("positional argument cannot follow named argument", position=position(argument))
        names.append(None)
        nodes.append(argument)
    operands = [binder.bind(n) for n in nodes]
    types = tuple(g.type for g in operands)
    fitting = [c for i in items if (c := _candidate(i, names, expands=not has_array)) is not None]
    fitting.sort(key=lambda c: (c.expanded, len(c.routine.arguments)))
    plain = {c.row.arguments for c in fitting if not c.expanded}
    candidates = [c for c in fitting if not c.expanded or c.row.arguments not in plain]  # one that is not expanded, if both fit
    choice = choose(tuple(c.row for c in candidates), types)
    shown = f"{name}({', '.join(f'{n} => {bare_type(t)}' if n else str(bare_type(t)) for n, t in zip(names, types, strict=True))})"
    if isinstance(choice, TailgateError):
        raise AmbiguousFunction(
            f"function {shown} is not unique", hint="Could not choose a best candidate function. " + CASTS_HINT, position=at
        )
    if choice is None:
        raise UndefinedFunction(f"function {shown} does not exist", hint=NO_MATCH, position=at)
    candidate = next(c for c in candidates if c.row is choice)
    return candidate.routine, _arguments(binder, candidate, nodes, operands)


def _candidate(function: Routine, names: list[str | None], *, expands: bool) -> _Candidate | None:
    """Returns the function as a candidate for a call, or None if the arguments do not fit.

    `names` has the name of each argument of the call, None for positional ones. `expands`: the call has no VARIADIC.
    """
    parameters = [a.name for a in function.arguments]
    if function.variadic and expands and len(names) >= len(parameters):
        if any(names):
            return None
        last = len(parameters) - 1
        expanded = (*range(last), *[last] * (len(names) - last))
        kinds = [*function.types[:-1], *[function.types[-1].element] * (len(names) - last)]
        return _Candidate(function, expanded, _row(function, kinds), expanded=True)
    places = list[int]()
    for i, name in enumerate(names):
        if (name is None and i >= len(parameters)) or (name is not None and name not in parameters):
            return None
        places.append(i if name is None else parameters.index(name))
    required = range(len(parameters) - len(function.defaults))
    if len(set(places)) < len(places) or not set(required) <= set(places):
        return None
    return _Candidate(function, tuple(places), _row(function, [function.types[p] for p in places]))


def _row(function: Routine, types: list[Type]) -> Function:
    return Function(function.name, tuple(map(catalogue_name, types)), catalogue_name(function.returns))


def _arguments(binder: ExpressionBinder, candidate: _Candidate, nodes: list[exp.Expr], operands: list[Scalar]) -> tuple[Scalar, ...]:
    function = candidate.routine
    first = len(function.arguments) - len(function.defaults)
    scalars = []
    for i, argument in enumerate(function.arguments):
        if i == len(function.arguments) - 1 and candidate.expanded:
            elements = [coerce(operand, argument.type.element, binder.parameters) for operand in operands[i:]]
            array = array_of(binder, nodes[i:], [element for element in elements if element is not None], None)
            scalar = coerce(array, argument.type, binder.parameters)
        elif i in candidate.places:
            scalar = coerce(operands[candidate.places.index(i)], argument.type, binder.parameters)
        else:
            own = replace(binder, level=replace(binder.level, names=binder.level.names.within(candidate.routine)))
            scalar = default(own, argument, function.defaults[i - first])
        assert scalar is not None, (candidate.routine.name, argument)
        scalars.append(scalar)
    return tuple(scalars)


def default(binder: ExpressionBinder, argument: Field, text: str) -> Scalar:
    """Binds the default of an argument. Raises 42P13, 0A000."""
    tree = parse_expression(text)
    if next(tree.find_all(exp.Column), None) is not None or next(tree.find_all(exp.Select), None) is not None:
        raise FeatureNotSupported("only constants and functions may be defaults of arguments")
    place = replace(binder, scope=Scope(), clause="DEFAULT expressions", aggregates=False)
    scalar = coerce(place.bind(_unplaced(tree)), argument.type, binder.parameters, "assignment")
    if scalar is None:
        raise InvalidFunctionDefinition(f"argument {argument.name} of type {argument.type} cannot have the default {text}")
    return scalar


# --- inlining ---------------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)  # each statement that calls a function binds its body again
def tree_of(text: str) -> exp.Expr:
    """Returns the tree of a function's body. Callers must not change it.

    It has no positions, because they would not be positions in the calling statement.
    """
    tree = parse_query(text)
    return _unplaced(tree)


def _unplaced(tree: exp.Expr) -> exp.Expr:
    for node in tree.walk():
        node.meta.pop("position", None)
    return tree


def _inside(binder: ExpressionBinder, function: Routine, arguments: tuple[Scalar, ...], at: int | None) -> ExpressionBinder:
    """Returns the binder of a call's body.

    Records the use of the function. Raises 0A000 for recursion.
    """
    names = binder.level.names
    if function.id in names.inside:
        raise FeatureNotSupported("recursive functions are not supported", position=at)
    names.demand(Demand(EXECUTE, function.id, names.readers))
    if function.id not in names.used:
        names.used.append(function.id)
    if at is not None:
        names.places[at] = function.id
    return body_binder(binder, function.name, function, arguments, names.within(function))


def body_binder(binder: ExpressionBinder, name: str, function: Routine, arguments: tuple[Scalar, ...], names: Names) -> ExpressionBinder:
    """Returns the binder of a function's body.

    `arguments` are its arguments, scalars over the rows of `binder`.
    """
    columns = tuple(Named(a.name, g) for a, g in zip(function.arguments, arguments, strict=True))
    scope = Scope(columns, (Table(name, columns),))
    queries = replace(binder.level.queries, parameters=Parameters())
    return replace(binder, scope=scope, level=Level(queries, names, arguments=arguments), clause=CLAUSE, aggregates=False, windows={})


def value(inner: ExpressionBinder, function: Routine, tree: exp.Expr) -> Scalar:
    """Returns the value of a function's body: that of the first row, or NULL without rows.

    Raises 42P13.

    The value is NULL if the function is strict and an argument is NULL.
    """
    if _is_expression(tree):
        (node,) = tree.expressions
        scalar = inner.typed(node.this if isinstance(node, exp.Alias) else node)
    else:
        closure = Closure(inner)
        relation = replace(inner.level.queries, outer=closure).query(tree, inner.level.names)
        if len(relation.columns) != 1:
            raise InvalidFunctionDefinition(MISMATCH % function.returns, detail="Final statement must return exactly one column.")
        if not _at_most_one(relation):
            relation = Limit(relation, Literal(1, INT8))
        scalar = as_scalar(Subquery("scalar", relation, closure.depth, closure.arguments(relation), relation.columns[0].type))
    result = _returned(scalar, function.returns)
    if result is None:
        raise InvalidFunctionDefinition(MISMATCH % function.returns, detail=f"Actual return type is {bare_type(scalar.type)}.")
    nulls = _nulls(inner, function)
    if not nulls:
        return result
    return Case((((nulls[0] if len(nulls) == 1 else Or(nulls)), Literal(None, result.type)),), result, result.type)


def rows(inner: ExpressionBinder, function: Routine, tree: exp.Expr) -> Relation:
    """Returns the rows of a function's body. Raises 42P13.

    There are none if the function is strict and an argument is NULL.
    """
    assert function.rows is not None
    closure = Closure(inner)
    relation = replace(inner.level.queries, outer=closure).query(tree, inner.level.names)
    if len(relation.columns) != len(function.rows):
        few = "many" if len(relation.columns) > len(function.rows) else "few"
        one = (
            "Final statement must return exactly one column." if len(function.rows) == 1 else f"Final statement returns too {few} columns."
        )
        raise InvalidFunctionDefinition(MISMATCH % function.returns, detail=one)
    outputs = []
    for i, (field, column) in enumerate(zip(function.rows, relation.columns, strict=True)):
        scalar = _returned(Column(i, column.type), field.type)
        if scalar is None:
            detail = f"Final statement returns {bare_type(column.type)} instead of {field.type} at column {i + 1}."
            if function.returns.name != "record":
                detail = f"Actual return type is {bare_type(column.type)}."
            raise InvalidFunctionDefinition(MISMATCH % function.returns, detail=detail)
        outputs.append(scalar)
    fields = tuple(Field(f.name, s.type) for f, s in zip(function.rows, outputs, strict=True))
    plan: Relation = Project(relation, tuple(outputs), fields)
    nulls = _nulls(inner, function)
    if nulls:
        plan = Filter(plan, conjunction(tuple(Not(IsNull(closure.capture(n.argument))) for n in nulls if isinstance(n, IsNull))))
    arguments = closure.arguments(plan)
    if not arguments:
        return plan
    return as_relation(Dependent(Values(((),), ()), plan, closure.depth, arguments, "inner", None))


def _returned(scalar: Scalar, type: Type) -> Scalar | None:
    """Casts a value of the body to the declared return type, or returns None if no cast exists."""
    result = coerce(scalar, type, Parameters(), "assignment")
    if result is not None and result.type.name == "numeric" and result.type.declared and result.type.modifiers:
        return coerce(result, replace(result.type, declared=False), Parameters())  # the result's precision does not count as declared
    return result


def _nulls(inner: ExpressionBinder, function: Routine) -> tuple[Scalar, ...]:
    """Returns IS NULL tests for the arguments of a strict function; none for other functions."""
    arguments = inner.level.arguments or ()
    return tuple(IsNull(g) for g in arguments if not isinstance(g, Literal) or g.value is None) if function.strict else ()


def _is_expression(tree: exp.Expr) -> bool:
    """Returns whether a body is SELECT with one expression, which can replace the call directly."""
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        return False
    node = tree.expressions[0]
    return not isinstance(node, exp.Star) and not any(v for k, v in tree.args.items() if k != "expressions") and not _aggregates(tree)


def _aggregates(tree: exp.Expr) -> bool:
    return any(r.kind in ("aggregate", "window") for n in tree.find_all(exp.Anonymous) for r in catalogue.calls(str(n.this)))


def _at_most_one(relation: Relation) -> bool:
    """Returns True if the relation certainly has at most one row."""
    match relation:
        case Reduce(keys=keys):
            return not keys
        case Values(rows=rows):
            return len(rows) <= 1
        case Limit(count=Literal(value=int() as count)):
            return count <= 1
        case Project() | Filter() | Sort() | Distinct() | Limit():
            return _at_most_one(relation.input)
    return False


# --- CREATE FUNCTION --------------------------------------------------------------------------------------------------------------


def is_built_in(name: str) -> bool:
    """Returns whether a built-in function has the name, which would hide a user-defined one."""
    return bool(catalogue.calls(name)) or name in catalogue.UNITS or name in FACTS or name in SPECIAL


SPECIAL = frozenset("array coalesce greatest least nullif grouping jsonb_build_object jsonb_build_array tumble hop session".split())
