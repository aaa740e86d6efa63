"""Expressions: binds a syntax tree over a scope and returns a typed scalar.

Source: PostgreSQL 15, src/backend/parser/{parse_expr,parse_func,parse_oper}.c.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal as OneOf

from sqlglot import exp

from tailgate.lake.errors import (
    CannotCoerce,
    DatatypeMismatch,
    FeatureNotSupported,
    IndeterminateDatatype,
    TailgateError,
    UndefinedColumn,
    UndefinedParameter,
)  # fmt: skip
from tailgate.lake.types import BOOL, INT4, INT8, TEXT, TIMESTAMPTZ, UNKNOWN, Type, numeric
from tailgate.sql.binding import calls, rows, special, subqueries
from tailgate.sql.binding.aggregates import bind_aggregate
from tailgate.sql.binding.coercion import Parameters, cast, coerce, common, plain
from tailgate.sql.binding.levels import Level, find_argument, find_column, said_item
from tailgate.sql.binding.pages import bind_range
from tailgate.sql.binding.places import leftmost
from tailgate.sql.binding.resolution import arguments, operator, result
from tailgate.sql.binding.scope import Scope
from tailgate.sql.binding.windows import bind_window
from tailgate.sql.functions import catalogue
from tailgate.sql.functions.comparison import SIGNS
from tailgate.sql.functions.entry import Function
from tailgate.sql.grammar.names import place, position
from tailgate.sql.grammar.operators import sign_of
from tailgate.sql.input.literals import literal, scale_of
from tailgate.sql.input.numbers import RANGES
from tailgate.sql.ordering import many_forms, sortable
from tailgate.sql.plan import (
    And,
    Call,
    Case,
    Coalesce,
    Extreme,
    InList,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
    Parameter,
    Scalar,
)  # fmt: skip
from tailgate.sql.typenames import resolve


def _timed(scalar: Scalar, other: Type) -> Scalar:
    """Replaces mz_now() by now() if the other operand is a date or timestamp."""
    if isinstance(scalar, Call) and scalar.function.name == "mz_now" and other.name in ("date", "timestamp", "timestamptz"):
        return Call(catalogue.calls("now")[0], (), TIMESTAMPTZ, scalar.position)
    return scalar


@dataclass(frozen=True)
class Expressions:
    """The binder of expressions in one clause of a query.

    `clause` is the clause's name in error messages. `aggregates` and `windows` tell whether
    aggregates are allowed and which named windows exist. `within_window` is set inside a window
    function.
    """

    scope: Scope
    level: Level
    clause: str = "SELECT"
    aggregates: bool = True
    windows: Mapping[str, exp.Window] = field(default_factory=dict)
    within_window: bool = False

    @property
    def parameters(self) -> Parameters:
        return self.level.queries.parameters

    @property
    def view(self) -> bool:
        """Returns whether the query defines a view."""
        return self.level.queries.view

    def within(self, clause: str) -> Expressions:
        """Returns the binder for another clause of the same query."""
        return replace(self, clause=clause, aggregates=clause in ("SELECT", "HAVING", "ORDER BY"))

    def bind(self, node: exp.Expr) -> Scalar:
        """Binds a tree.

        Quoted literals and NULL may remain of type unknown. Raises 54001 if it is too large.
        """
        return self.level.queries.sizes.check(self._bound(node))

    def _bound(self, node: exp.Expr) -> Scalar:
        match node:
            case exp.Column():
                return self._column(node)
            case exp.Literal():
                return self._literal(node)
            case exp.Null():
                return self._null(node)
            case exp.Boolean():
                return self._true(node)
            case exp.Parameter():
                return self._parameter(node)
            case exp.Paren():
                return self._parenthesis(node)
            case exp.Neg():
                return self._negative(node)
            case exp.And():
                return self._and(node)
            case exp.Or():
                return self._or(node)
            case exp.Not():
                return self._not(node)
            case exp.Is():
                return self._is(node)
            case exp.Dot():
                return self._field(node)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                return self._distinct(node)
            case exp.Between():
                return self._between(node, position(node))
            case exp.In():
                return self._in(node, position(node))
            case exp.Like() | exp.ILike():
                return self._like(node)
            case exp.Escape():
                return self._escape(node)
            case exp.Cast():
                return self._cast(node)
            case exp.Case():
                return self._case(node)
            case exp.Anonymous():
                return calls.bind_call(self, node)
            case exp.Window():
                return bind_window(self, node)
            case exp.Filter() | exp.WithinGroup():
                return bind_aggregate(self, node)
            case exp.Array():
                return self._array(node)
            case exp.Subquery():
                return subqueries.bind_scalar(self, node)
            case exp.Exists():
                return subqueries.bind_exists(self, node)
            case exp.Bracket():
                return special.bind_subscript(self, node)
            case exp.AtTimeZone():
                return special.bind_zone(self, node)
            case exp.Overlaps():
                return special.bind_overlaps(self, node)
            case exp.SimilarTo():
                return self._similar(node)
            case exp.Collate():
                return self._collate(node)
        sign = sign_of(node)
        if sign is not None:
            return self._operator(sign, node)
        raise FeatureNotSupported(f"{_words(node)} is not supported", position=position(node))

    def typed(self, node: exp.Expr) -> Scalar:
        """Binds a tree. A scalar that would be of type unknown becomes text."""
        return self.known(self.bind(node))

    def known(self, scalar: Scalar) -> Scalar:
        """Returns the scalar, cast to text if its type is unknown."""
        if scalar.type != UNKNOWN:
            return scalar
        found = coerce(scalar, TEXT, self.parameters)
        assert found is not None
        return found

    def boolean(self, node: exp.Expr, clause: str) -> Scalar:
        """Binds a condition. `clause` names it in errors. Raises 42804."""
        return self._boolean(self.bind(node), node, clause)

    def _boolean(self, scalar: Scalar, node: exp.Expr, clause: str) -> Scalar:
        if scalar.type.name != "bool" or scalar.type.is_array:
            found = coerce(scalar, BOOL, self.parameters, "assignment") if scalar.type == UNKNOWN else None
            if found is None:
                raise DatatypeMismatch(f"argument of {clause} must be type boolean, not type {plain(scalar.type)}", position=leftmost(node))
            return found
        return scalar

    # --- names and values

    def _column(self, node: exp.Column) -> Scalar:
        at = position(node)
        if isinstance(node.this, exp.Star):
            raise FeatureNotSupported("a row as a value is not supported", position=at)
        table, item = node.text("table") or None, said_item(self, node)
        if table is None and not any(c.name == node.name for c in self.scope.columns):
            whole = [t for t in self.scope.tables if t.alias == node.name and not t.value]
            if whole:
                raise FeatureNotSupported("a whole row as a value is not supported", position=at)
        return find_column(self, node.name, table, at, item)

    def _literal(self, node: exp.Literal) -> Scalar:
        at = position(node)
        if node.is_string:
            return Literal(node.this, UNKNOWN, at)
        text = node.this
        if text.isdigit():
            value = int(text)
            for type in (INT4, INT8):
                if value <= RANGES[type.name][1]:
                    return Literal(value, type, at)
        return literal(text, numeric(scale_of(text)), at)

    def _null(self, node: exp.Null) -> Scalar:
        return Literal(None, UNKNOWN, position(node))

    def _true(self, node: exp.Boolean) -> Scalar:
        return Literal(bool(node.this), BOOL, position(node))

    def _parameter(self, node: exp.Parameter) -> Scalar:
        number = int(node.name)
        if (given := find_argument(self, number, position(node))) is not None:
            return given
        if number < 1 or number > 65535 or not self.parameters.allowed:
            raise UndefinedParameter(f"there is no parameter ${number}", position=position(node))
        return self.parameters.at(number, position(node))

    def _parenthesis(self, node: exp.Paren) -> Scalar:
        return self.bind(node.this)

    # --- operators

    def _operator(self, sign: str, node: exp.Expr, at: int | None = None) -> Scalar:
        left, right = node.this, node.args["expression"]
        at = position(node) if at is None else at
        if isinstance(right, (exp.Any, exp.All)):
            bind = subqueries.bind_quantified if isinstance(right.this, exp.Subquery) else special.bind_quantified
            return bind(self, sign, left, right, at)
        if isinstance(left, exp.Tuple) or isinstance(right, exp.Tuple):
            return rows.bind_comparison(self, sign, left, right, at)
        return self.operate(sign, [self.bind(left), self.bind(right)], at)

    def operate(self, sign: str, given: list[Scalar], at: int | None) -> Scalar:
        """Returns a call of the operator that fits the operands best. Raises 42883, 42725, 0A000.

        mz_now(), a number of milliseconds, can be compared with dates and timestamps, as in
        Materialize.
        """
        given = [_timed(s, given[1 - i].type) for i, s in enumerate(given)]
        call = self.call(operator(sign, tuple(s.type for s in given), at), given, at)
        if sign in SIGNS and isinstance(call, Call) and all(a.type.is_array and many_forms(a.type) for a in call.arguments):
            keys = [sortable(a) for a in call.arguments]
            return self.call(operator(sign, tuple(k.type for k in keys), at), keys, at)
        return call

    def call(self, found: Function, given: list[Scalar], at: int | None) -> Scalar:
        """Returns a call of a function, with the arguments cast to its types."""
        made = arguments(found, given, self.parameters)
        return Call(found, made, result(found, made), at)

    def _negative(self, node: exp.Neg) -> Scalar:
        inner, negative = node.this, True
        while isinstance(inner, (exp.Paren, exp.Neg)):  # a number with its signs is one literal, as in doNegate()
            negative ^= isinstance(inner, exp.Neg)
            inner = inner.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            scalar = self._literal(inner)
            assert isinstance(scalar, Literal)
            value = scalar.value
            assert isinstance(value, (int, Decimal))
            if not negative:
                return replace(scalar, position=position(node))
            if value in (2**31, 2**63) and inner.this.isdigit():
                return Literal(-int(value), INT4 if value == 2**31 else INT8, position(node))
            return replace(scalar, value=-value, position=position(node))
        inner = node.this
        return self.prefix("-", inner, position(node))

    def prefix(self, sign: str, operand: exp.Expr, at: int | None) -> Scalar:
        """Binds a prefix operator. Raises 42883, 42725, 0A000."""
        given = [self.bind(operand)]
        return self.call(operator(sign, tuple(s.type for s in given), at), given, at)

    def _and(self, node: exp.And) -> Scalar:
        sides = [self.boolean(side, "AND") for side in (node.this, node.args["expression"])]
        return And(tuple(a for s in sides for a in (s.arguments if isinstance(s, And) else (s,))))

    def _or(self, node: exp.Or) -> Scalar:
        sides = [self.boolean(side, "OR") for side in (node.this, node.args["expression"])]
        return Or(tuple(a for s in sides for a in (s.arguments if isinstance(s, Or) else (s,))))

    def _not(self, node: exp.Not) -> Scalar:
        if node.meta.get("word"):  # NOT LIKE, NOT IN and NOT BETWEEN are separate operators
            match node.this:
                case exp.Like() | exp.ILike():
                    return self._like(node.this, "!", position(node))
                case exp.SimilarTo():
                    return self._similar(node.this, None, position(node), "!")
                case exp.Escape():
                    return self._escape(node.this, "!", position(node))
                case exp.Between():
                    return self._between(node.this, position(node), negated=True)
                case exp.In():
                    return self._in(node.this, position(node), negated=True)
        return Not(self.boolean(node.this, "NOT"))

    def _is(self, node: exp.Is) -> Scalar:
        test = node.args["expression"]
        if isinstance(test, exp.Null):
            if isinstance(node.this, exp.Tuple):
                return rows.bind_null(self, node.this, negated=bool(node.meta.get("negated")))
            inner = self.bind(node.this)
            # IS NULL gives a parameter no type. If nothing else does, the result is 42P18.
            return IsNull(inner if isinstance(inner, Parameter) else self.known(inner))
        if isinstance(test, exp.Boolean):
            word = f"IS{' NOT' if node.meta.get('negated') else ''} {'TRUE' if test.this else 'FALSE'}"
            return Not(IsDistinct(self.boolean(node.this, word), Literal(bool(test.this), BOOL)))
        if test.name == "unknown":
            return IsNull(self.boolean(node.this, f"IS{' NOT' if node.meta.get('negated') else ''} UNKNOWN"))
        raise FeatureNotSupported(f"IS {test.name.upper()} is not supported", position=position(node))

    def _field(self, node: exp.Dot) -> Scalar:
        """Binds (t).column, where t is an alias in FROM, and ROW(…).f1."""
        inner, field = node.this, node.expression
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.Tuple) and isinstance(field, exp.Identifier):
            if not (field.name[:1] == "f" and field.name[1:].isdigit() and 0 < int(field.name[1:]) <= len(inner.expressions)):
                raise UndefinedColumn(f'could not identify column "{field.name}" in record data type', position=position(field))
            return self.typed(inner.expressions[int(field.name[1:]) - 1])
        whole = isinstance(inner, exp.Column) and not inner.args.get("table") and not any(c.name == inner.name for c in self.scope.columns)
        if whole and isinstance(field, exp.Identifier):
            return self._column(place(exp.Column(this=field, table=inner.this), position(inner) or 0))
        raise FeatureNotSupported("a field of this row is not supported", hint="Name the column: alias.column.", position=position(node))

    def _distinct(self, node: exp.Expr) -> Scalar:
        left, right = node.this, node.args["expression"]
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
            test = rows.bind_distinct(self, left, right, position(node))
        else:
            test = self.distinct([self.bind(left), self.bind(right)], position(node))
        return Not(test) if isinstance(node, exp.NullSafeEQ) else test

    def distinct(self, given: list[Scalar], at: int | None) -> Scalar:
        """Returns IS DISTINCT FROM of two operands."""
        equal = self.operate("=", given, at)
        assert isinstance(equal, Call)
        if equal.function.arguments[0] not in ("jsonb", "interval", "bpchar"):
            return IsDistinct(*equal.arguments)
        # Values of these types can be equal in different stored forms, so `=` is needed. It is NULL
        # if an operand is NULL.
        first, second = (IsNull(a) for a in equal.arguments)
        known = Coalesce((Not(equal), Literal(True, BOOL)), BOOL)
        return Case(((And((first, second)), Literal(False, BOOL)),), known, BOOL)

    def _between(self, node: exp.Between, at: int | None, *, negated: bool = False) -> Scalar:
        if not negated and (pages := bind_range(self, node)) is not None:
            return pages
        value, low, high = (self.bind(node.args[k]) for k in ("this", "low", "high"))

        def pair(a: Scalar, b: Scalar) -> Scalar:
            if negated:
                return Or((self.operate("<", [value, a], at), self.operate(">", [value, b], at)))
            return And((self.operate(">=", [value, a], at), self.operate("<=", [value, b], at)))

        if not node.args.get("symmetric"):
            return pair(low, high)
        both = pair(low, high), pair(high, low)
        return And(both) if negated else Or(both)

    def _in(self, node: exp.In, at: int | None, *, negated: bool = False) -> Scalar:
        if node.args.get("query"):
            return subqueries.bind_in(self, node, at, negated=negated)
        sign = "<>" if negated else "="
        if isinstance(node.this, exp.Tuple):
            return rows.bind_in(self, node.this, node.expressions, at, negated=negated)
        value = self.bind(node.this)
        items = [self.bind(e) for e in node.expressions]
        if len(items) > 1 and (found := self._in_list(value, items)) is not None:
            return Not(found) if negated else found
        tests = tuple(self.operate(sign, [value, i], at) for i in items)
        if len(tests) == 1:
            return tests[0]
        return And(tests) if negated else Or(tests)

    def _in_list(self, value: Scalar, items: list[Scalar]) -> InList | None:
        """Returns IN as one node, or None if it must be a list of comparisons.

        The items must be literals of one type whose stored forms are equal if its values are.
        """
        if not all(isinstance(i, Literal) for i in items) or all(s.type == UNKNOWN for s in (value, *items)):
            return None
        try:
            type = common([value, *items], [None] * (len(items) + 1), "IN")
        except DatatypeMismatch:
            return None
        made = [coerce(s, type, self.parameters) for s in (value, *items)]
        if None in made or type.name in ("interval", "bpchar", "jsonb") or type.is_array:
            return None
        left, *rest = (m for m in made if m is not None)
        return InList(left, tuple(rest))

    def _like(self, node: exp.Expr, negation: str = "", at: int | None = None) -> Scalar:
        return self._operator(negation + ("~~*" if isinstance(node, exp.ILike) else "~~"), node, at)

    def _similar(self, node: exp.Expr, escape: exp.Expr | None = None, at: int | None = None, negation: str = "") -> Scalar:
        return self.operate(negation + "~", list(special.escaped(self, node, escape)), position(node) if at is None else at)

    def _escape(self, node: exp.Escape, negation: str = "", at: int | None = None) -> Scalar:
        inner, character = node.this, node.args["expression"]
        if isinstance(inner, exp.SimilarTo):
            return self._similar(inner, character, at, negation)
        sign = negation + ("~~*" if isinstance(inner, exp.ILike) else "~~")
        return self.operate(sign, list(special.escaped(self, inner, character)), position(inner) if at is None else at)

    def _collate(self, node: exp.Collate) -> Scalar:
        """Binds COLLATE.

        Raises 0A000 for any collation but the supported one, which compares bytes.
        """
        value = self.typed(node.this)
        if node.args["expression"].name not in ("C", "POSIX", "default", "ucs_basic"):
            raise FeatureNotSupported(f'collation "{node.args["expression"].name}" is not supported', position=position(node))
        if value.type.facts.category != "S":
            raise DatatypeMismatch(f"collations are not supported by type {plain(value.type)}", position=position(node))
        return value

    # --- casts, CASE and arrays

    def _cast(self, node: exp.Cast) -> Scalar:
        to = node.args["to"]
        target = resolve(to)
        if isinstance(node.this, exp.Array) and not node.this.expressions:
            return Literal((), target, position(node))
        at = position(node)
        if target.name in ("float4", "float8") and isinstance(node.this, exp.Literal) and not node.this.is_string:
            return literal(node.this.this, target, position(node.this))  # 1e300 does not fit into numeric
        inner = self.bind(node.this)
        return cast(inner, target, self.parameters, at, to.meta.get("fields", ""))

    def unify(self, nodes: list[exp.Expr], scalars: list[Scalar], what: str) -> tuple[tuple[Scalar, ...], Type]:
        """Casts scalars to their common type, which is returned, too.

        `what` names them in errors. Raises 42804.
        """
        places = [leftmost(n) for n in nodes]
        type = common(scalars, places, what)
        made = []
        for scalar, where in zip(scalars, places, strict=True):
            found = coerce(scalar, type, self.parameters)
            if found is None:
                raise mismatch(what, scalar, type, where)
            made.append(found)
        return tuple(made), type

    def _case(self, node: exp.Case) -> Scalar:
        subject = self.bind(node.this) if node.this is not None else None
        conditions: list[Scalar] = []
        for branch in node.args["ifs"]:
            if subject is None:
                conditions.append(self.boolean(branch.this, "CASE/WHEN"))
            else:
                conditions.append(self.operate("=", [subject, self.bind(branch.this)], position(branch)))
        default = node.args.get("default")
        nodes = [b.args["true"] for b in node.args["ifs"]]
        scalars = [self.bind(n) for n in nodes]
        otherwise = self.bind(default) if default is not None else Literal(None, UNKNOWN)
        # ELSE comes first in the choice of the common type, as in transformCaseExpr().
        made, type = self.unify([default if default is not None else exp.Null(), *nodes], [otherwise, *scalars], "CASE")
        return Case(tuple(zip(conditions, made[1:], strict=True)), made[0], type)

    def _array(self, node: exp.Array) -> Scalar:
        nodes = list(node.expressions)
        if not nodes:
            raise empty_array(position(node))
        if any(isinstance(n, exp.Array) for n in nodes):
            raise FeatureNotSupported("arrays of more than one dimension are not supported", position=position(node))
        made, type = self.unify(nodes, [self.bind(n) for n in nodes], "ARRAY")
        if type.is_array:
            raise FeatureNotSupported("arrays of more than one dimension are not supported", position=position(node))
        if all(isinstance(m, Literal) for m in made):
            return Literal(tuple(m.value for m in made if isinstance(m, Literal)), type.array(), position(node))
        return Call(catalogue.calls("ARRAY")[0], made, type.array(), position(node))

    def unified(self, scalars: list[Scalar]) -> tuple[tuple[Scalar, ...], Type]:
        """Does the same as `unify` for scalars without nodes."""
        return self.unify([exp.Null()] * len(scalars), scalars, "OVERLAPS")

    def extreme(self, which: OneOf["greatest", "least"], scalars: tuple[Scalar, ...]) -> Scalar:
        """Returns the greatest or least of scalars of one type."""
        return Extreme(which, scalars, scalars[0].type)


def empty_array(at: int | None) -> TailgateError:
    return IndeterminateDatatype(
        "cannot determine type of empty array",
        hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].",
        position=at,
    )


def mismatch(what: str, scalar: Scalar, type: Type, place: int | None) -> TailgateError:
    return CannotCoerce(f"{what} could not convert type {plain(scalar.type)} to {plain(type)}", position=place)


WORDS: dict[type[exp.Expr], str] = {
    exp.Tuple: "a row as a value",
    exp.BitString: "a bit string",
    exp.HexString: "a bit string",
    exp.Star: "*",
}


def _words(node: exp.Expr) -> str:
    return WORDS.get(type(node), type(node).__name__)
