"""The place where an expression or a query stands: its names, the queries around it, and its binder.

    QueryBinder ──► Level (one query) ──► ExpressionBinder (one clause) ──► Closure (a subquery in it) ──► QueryBinder …

Each module of the binder binds one kind of syntax. It reaches the expressions and queries inside that
syntax through the two abstract classes, which `expressions.expressions` and `queries.queries`
implement, so no two modules import each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from tailgate.lake.errors import CannotCoerce, DatatypeMismatch, TailgateError
from tailgate.lake.types import BOOL, TEXT, TIMESTAMPTZ, UNKNOWN, Type
from tailgate.sql.binder.expression_size import Sizes
from tailgate.sql.binder.positions import leftmost
from tailgate.sql.binder.relation_names import Names
from tailgate.sql.binder.scope import Scope, Table
from tailgate.sql.binder.types import row_operators
from tailgate.sql.binder.types.coercion import bare_type, coerce, common
from tailgate.sql.binder.types.comparability import require_equality
from tailgate.sql.binder.types.overloads import arguments, array_literal, operator, specialized
from tailgate.sql.binder.types.parameters import Parameters
from tailgate.sql.functions import catalogue
from tailgate.sql.functions.comparison import SIGNS
from tailgate.sql.functions.entry import Function
from tailgate.sql.plan import And, Call, Case, Coalesce, IsDistinct, IsNull, Literal, Not, Parameter, Relation, Scalar
from tailgate.sql.plan.correlation import arguments_of, arguments_read
from tailgate.sql.plan.rows import is_row
from tailgate.sql.plan.sort_keys import EQUAL_FORMS, has_equal_forms, sort_key
from tailgate.sql.plan.subqueries import Argument, argument, as_scalar


@dataclass(frozen=True)
class QueryBinder(ABC):
    """The binder of queries.

    `view`: the query defines a view, in which parameters and volatile functions are not allowed.
    `outer`: the closure around the query, None at the top. `sizes`: the sizes of all expressions.
    """

    parameters: Parameters = field(default_factory=Parameters)
    view: bool = False
    outer: Closure | None = None
    sizes: Sizes = field(default_factory=Sizes, compare=False)

    @abstractmethod
    def query(self, tree: exp.Expr, names: Names, *, side: bool = False) -> Relation:
        """Binds a query with its WITH.

        Output columns of unknown type become text, except in a `side` of a set operation, which
        chooses their type.
        """


@dataclass(frozen=True)
class Level:
    """One query, or the body of a function.

    `queries` binds the subqueries inside it. `tables` are those that its FROM has bound so far,
    visible or not; error messages need them. `arguments` are the values of $1, $2, … in the body of
    a function, where no outer name is visible; None in a query.
    """

    queries: QueryBinder
    names: Names
    tables: list[Table] = field(default_factory=list)
    arguments: tuple[Scalar, ...] | None = None

    @property
    def outer(self) -> Closure | None:
        """Returns the closure around the query, or None at the top."""
        return self.queries.outer


@dataclass(frozen=True)
class Closure:
    """The boundary between a subquery and the place where it stands.

    `binder` binds names at that place. `captured` are the scalars over the rows there that the
    subquery reads; they are its arguments.

    `item`: the subquery is an item of FROM. The items to its left are visible only with LATERAL
    (`lateral`). In a RIGHT or FULL JOIN, reading them is an error (`refused`).
    """

    binder: ExpressionBinder
    item: bool = False
    lateral: bool = False
    refused: bool = False
    captured: list[Scalar] = field(default_factory=list)

    @property
    def depth(self) -> int:
        """Returns the number of closures around the subquery, including this one."""
        return 1 + (self.further.depth if self.further is not None else 0)

    @property
    def further(self) -> Closure | None:
        """Returns the next closure outward, or None."""
        return self.binder.level.outer

    @property
    def visible(self) -> bool:
        """Returns whether the subquery can use the names at the place where it stands."""
        return self.lateral or not self.item

    def capture(self, scalar: Scalar, position: int | None = None) -> Scalar:
        """Returns the argument that stands for a scalar of this place inside the subquery.

        A scalar that depends on no row of this place is returned unchanged.
        """
        if _is_free(scalar):
            return scalar
        if scalar not in self.captured:
            self.captured.append(scalar)
        return as_scalar(Argument(self.depth, self.captured.index(scalar), scalar.type, position))

    def arguments(self, relation: Relation, *scalars: Scalar) -> tuple[Scalar, ...]:
        """Returns the captured scalars, with NULL in place of those that are not read.

        `relation` and `scalars` may no longer read one, because an aggregate over an outer column
        has moved to the outer query.
        """
        read = {a.number for a in arguments_read(relation) if a.depth == self.depth}
        read |= {a.number for s in scalars for a in arguments_of(s) if a.depth == self.depth}
        return tuple(s if n in read else Literal(None, s.type) for n, s in enumerate(self.captured))


def _is_free(scalar: Scalar) -> bool:
    """Returns whether a scalar depends on no row here, so that a subquery can use it unchanged."""
    if isinstance(scalar, Literal | Parameter) or argument(scalar) is not None:
        return True
    return isinstance(scalar, Call) and scalar.function.kind == "cast" and all(map(_is_free, scalar.arguments))


@dataclass(frozen=True)
class ExpressionBinder(ABC):
    """The binder of expressions in one clause of a query.

    `clause` is the clause's name in error messages. `aggregates` and `windows` tell whether
    aggregates are allowed and which named windows exist. `within_window` is set inside a window
    function. `variables`: the numbers of the variables of the lambdas around it.
    """

    scope: Scope
    level: Level
    clause: str = "SELECT"
    aggregates: bool = True
    windows: Mapping[str, exp.Window] = field(default_factory=dict)
    within_window: bool = False
    variables: frozenset[int] = frozenset()

    @property
    def parameters(self) -> Parameters:
        return self.level.queries.parameters

    @property
    def view(self) -> bool:
        """Returns whether the query defines a view."""
        return self.level.queries.view

    def within(self, clause: str) -> ExpressionBinder:
        """Returns the binder for another clause of the same query."""
        return replace(self, clause=clause, aggregates=clause in ("SELECT", "HAVING", "ORDER BY"))

    @abstractmethod
    def bind(self, node: exp.Expr) -> Scalar:
        """Binds a tree.

        Quoted literals and NULL may remain of type unknown. Raises 54001 if it is too large.
        """

    def typed(self, node: exp.Expr) -> Scalar:
        """Binds a tree. A scalar that would be of type unknown becomes text."""
        return self.known(self.bind(node))

    def known(self, scalar: Scalar) -> Scalar:
        """Returns the scalar, cast to text if its type is unknown."""
        if scalar.type != UNKNOWN:
            return scalar
        text = coerce(scalar, TEXT, self.parameters)
        assert text is not None
        return text

    def boolean(self, node: exp.Expr, clause: str) -> Scalar:
        """Binds a condition. `clause` names it in errors. Raises 42804."""
        return self._boolean(self.bind(node), node, clause)

    def _boolean(self, scalar: Scalar, node: exp.Expr, clause: str) -> Scalar:
        if scalar.type.name != "bool" or scalar.type.is_array:
            condition = coerce(scalar, BOOL, self.parameters, "assignment") if scalar.type == UNKNOWN else None
            if condition is None:
                raise DatatypeMismatch(
                    f"argument of {clause} must be type boolean, not type {bare_type(scalar.type)}", position=leftmost(node)
                )
            return condition
        return scalar

    def operate(self, sign: str, operands: list[Scalar], at: int | None) -> Scalar:
        """Returns a call of the operator that fits the operands best. Raises 42883, 42725, 0A000.

        mz_now(), a number of milliseconds, can be compared with dates and timestamps, as in
        Materialize.
        """
        if sign in SIGNS and any(is_row(s.type) for s in operands):
            return row_operators.compare(sign, operands, self.parameters, at)
        operands = [_timed(s, operands[1 - i].type) for i, s in enumerate(operands)]
        if sign == "||":
            operands = [_printed(s, operands[1 - i].type, self.parameters) for i, s in enumerate(operands)]
        call = self.call(operator(sign, tuple(s.type for s in operands), at), operands, at)
        if sign in SIGNS:
            for operand in operands:
                require_equality(operand.type.element, at)
        if sign in SIGNS and isinstance(call, Call) and all(a.type.is_array and has_equal_forms(a.type) for a in call.arguments):
            keys = [sort_key(a) for a in call.arguments]
            return self.call(operator(sign, tuple(k.type for k in keys), at), keys, at)
        return call

    def call(self, function: Function, operands: list[Scalar], at: int | None) -> Scalar:
        """Returns a call of a function, with the arguments cast to its types."""
        casts = arguments(function, operands, self.parameters)
        function, casts, type = specialized(function, casts)
        return Call(function, casts, type, at)

    def prefix(self, sign: str, operand: exp.Expr, at: int | None) -> Scalar:
        """Binds a prefix operator. Raises 42883, 42725, 0A000."""
        operands = [self.bind(operand)]
        return self.call(operator(sign, tuple(s.type for s in operands), at), operands, at)

    def distinct(self, operands: list[Scalar], at: int | None) -> Scalar:
        """Returns IS DISTINCT FROM of two operands."""
        equal = self.operate("=", operands, at)
        assert isinstance(equal, Call)
        if equal.function.arguments[0] not in EQUAL_FORMS and not equal.function.takes_general:
            return IsDistinct(*equal.arguments)
        # Values of these types can be equal in different stored forms, so `=` is needed. It is NULL
        # if an operand is NULL.
        first, second = (IsNull(a) for a in equal.arguments)
        differs = Coalesce((Not(equal), Literal(True, BOOL)), BOOL)
        return Case(((And((first, second)), Literal(False, BOOL)),), differs, BOOL)

    def unify(self, nodes: list[exp.Expr], scalars: list[Scalar], what: str) -> tuple[tuple[Scalar, ...], Type]:
        """Casts scalars to their common type, which is returned, too.

        `what` names them in errors. Raises 42804.
        """
        places = [leftmost(n) for n in nodes]
        type = common(scalars, places, what)
        if type.is_array:
            scalars = [array_literal(s, type, self.parameters) for s in scalars]
            type = type.array(multidimensional=any(s.type.multidimensional for s in scalars))
        casts = []
        for scalar, where in zip(scalars, places, strict=True):
            cast = coerce(scalar, type, self.parameters)
            if cast is None:
                raise mismatch(_branch(what, scalar is scalars[0]), scalar, type, where)
            casts.append(cast)
        return tuple(casts), type


def _printed(scalar: Scalar, other: Type, parameters: Parameters) -> Scalar:
    """Returns an enum as text if the other operand of || is text or has no type."""
    if scalar.type.enum is None or scalar.type.is_array or other.is_array or (other != UNKNOWN and other.facts.category != "S"):
        return scalar
    return coerce(scalar, TEXT, parameters, "explicit") or scalar


def _timed(scalar: Scalar, other: Type) -> Scalar:
    """Replaces mz_now() by now() if the other operand is a date or timestamp."""
    if isinstance(scalar, Call) and scalar.function.name == "mz_now" and other.name in ("date", "timestamp", "timestamptz"):
        return Call(catalogue.calls("now")[0], (), TIMESTAMPTZ, scalar.position)
    return scalar


def _branch(what: str, first: bool) -> str:
    """Returns the name of a value in errors. The first of CASE is that of ELSE."""
    return what if what != "CASE" else "CASE/ELSE" if first else "CASE/WHEN"


def mismatch(what: str, scalar: Scalar, type: Type, place: int | None) -> TailgateError:
    return CannotCoerce(f"{what} could not convert type {bare_type(scalar.type)} to {bare_type(type)}", position=place)
