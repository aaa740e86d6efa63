"""SEARCH and CYCLE: columns that a recursive query gets for the order of its rows, and against loops.

    SEARCH DEPTH FIRST BY c SET s      s = ARRAY[ROW(c)], then s || ROW(c)
    SEARCH BREADTH FIRST BY c SET s    s = ROW(0, c), then ROW(s.f1 + 1, c)
    CYCLE c SET m TO v DEFAULT d       m = d, then v if ROW(c) is in p, otherwise d; rows whose m is v have no successors
      USING p                          p = ARRAY[ROW(c)], then p || ROW(c)

Source: PostgreSQL 15, src/backend/rewrite/rewriteSearchCycle.c; src/backend/parser/parse_cte.c (analyzeCTE).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from tailgate.lake.errors import DuplicateColumn, FeatureNotSupported, SyntaxError_
from tailgate.lake.types import BOOL, INT8, Field, Type
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.types.comparability import require_equality
from tailgate.sql.functions import arrays, catalogue
from tailgate.sql.grammar.search_and_cycle import Clauses, Cycle, Search
from tailgate.sql.plan import Call, Case, Column, Filter, Literal, Project, Relation, Scalar
from tailgate.sql.plan.rows import COMPARISONS, fields, row
from tailgate.sql.plan.sort_keys import sort_key

APPEND = catalogue.calls("array_append")[0]
WHAT = "with a SEARCH or CYCLE clause, the"


@dataclass(frozen=True, slots=True)
class Extension:
    """The added columns of a recursive query.

    `first`: their values in the base, over the query's columns. `following`, `condition`: their values in the step, and which rows it
    keeps, over the query's columns and the added columns of the row from which a row comes.
    """

    columns: tuple[Field, ...]
    first: tuple[Scalar, ...]
    following: tuple[Scalar, ...]
    condition: Scalar | None

    def base(self, relation: Relation, columns: tuple[Field, ...]) -> Relation:
        """Returns the rows of the base with the added columns. `columns`: those of the query."""
        return Project(relation, (*_each(columns), *self.first), (*columns, *self.columns))

    def step(self, relation: Relation, values: tuple[Scalar, ...], columns: tuple[Field, ...]) -> Relation:
        """Returns the rows of the step with the added columns.

        `relation`: has the step's outputs and then the added columns of the row from which a row comes. `values`: those of `columns`.
        """
        outputs = len(relation.columns) - len(self.columns)
        before = tuple(Column(outputs + i, field.type) for i, field in enumerate(self.columns))
        every = (*columns, *self.columns)
        relation = Project(relation, (*values, *before), every)
        if self.condition is not None:
            relation = Filter(relation, self.condition)
        return Project(relation, (*_each(columns), *self.following), every)


def extension(clauses: Clauses, columns: tuple[Field, ...], binder: ExpressionBinder) -> Extension:
    """Returns the added columns of a query with these columns. Raises 42601, 42701, 42804, 42883."""
    search, cycle = clauses.search, clauses.cycle
    names = [column.name for column in columns]
    added: list[Field] = []
    first: list[Scalar] = []
    following: list[Scalar] = []
    condition: Scalar | None = None

    def add(name: str, type: Type) -> Scalar:
        """Adds a column, and returns its value in the row from which a row comes."""
        added.append(Field(name, type))
        return Column(len(columns) + len(added) - 1, type)

    if search is not None:
        _check_columns("search", search, names)
        _check_new("search sequence", search.sequence, names, search)
    if cycle is not None:
        _check_columns("cycle", cycle, names)
        _check_new("cycle mark", cycle.mark, names, cycle)
    if search is not None:
        by = [_named(name, columns) for name in search.columns]
        if search.breadth_first:
            first.append(row([Literal(0, INT8), *by]))
            before = add(search.sequence, first[-1].type)
            following.append(row([binder.operate("+", [fields(before)[0], Literal(1, INT8)], None), *by]))
        else:
            first.append(_array(row(by)))
            following.append(_appended(add(search.sequence, first[-1].type), row(by)))
    if cycle is not None:
        element = row([_named(name, columns) for name in cycle.columns])
        value, default = _marks(cycle, binder)
        require_equality(value.type, cycle.position)
        _check_new("cycle path", cycle.path, names, cycle)
        _check_names(search, cycle)
        mark = add(cycle.mark, value.type)
        path = add(cycle.path, element.type.array())
        is_in_path = arrays.quantified(COMPARISONS["="], False, ("record", "record[]"))
        repeats = Call(is_in_path, (sort_key(element), sort_key(path)), BOOL)
        first += [default, _array(element)]
        following += [Case(((repeats, value),), default, value.type), _appended(path, element)]
        condition = binder.operate("<>", [mark, value], None)
    return Extension(tuple(added), tuple(first), tuple(following), condition)


def with_added_outputs(tree: exp.Union, second: exp.Expr, reference: exp.Expr, names: Sequence[str]) -> exp.Expr:
    """Returns the recursive term with the added columns of the row that it reads as its last outputs. Raises 42601, 0A000.

    `second`: the term without parentheses. `reference`: its reference to the query.
    """
    first = tree.this
    while isinstance(first, exp.Subquery):
        first = first.this
    if isinstance(first, exp.SetOperation):
        raise FeatureNotSupported(f"{WHAT} left side of the UNION must be a SELECT")
    if not isinstance(second, exp.Select):
        raise SyntaxError_(f"{WHAT} right side of the UNION must be a SELECT")
    if reference.find_ancestor(exp.Select) is not second:
        shown = f'recursive reference to WITH query "{reference.name}" must be at the top level of its right-hand SELECT'
        raise FeatureNotSupported(f"{WHAT} {shown}")
    alias = reference.alias_or_name
    outputs = [exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(alias, quoted=True)) for name in names]
    term = second.copy()
    term.set("expressions", [*term.expressions, *outputs])
    return term


def _marks(cycle: Cycle, binder: ExpressionBinder) -> tuple[Scalar, ...]:
    """Returns the value of the mark of a row that ends a cycle, and that of others."""
    if cycle.values is None:
        return Literal(True, BOOL), Literal(False, BOOL)
    nodes = list(cycle.values)
    return binder.unify(nodes, [binder.bind(node) for node in nodes], "CYCLE")[0]


def _each(columns: Sequence[Field]) -> tuple[Scalar, ...]:
    return tuple(Column(i, column.type) for i, column in enumerate(columns))


def _named(name: str, columns: Sequence[Field]) -> Scalar:
    place = [column.name for column in columns].index(name)
    return Column(place, columns[place].type)


def _array(element: Scalar) -> Scalar:
    return Call(catalogue.calls("ARRAY")[0], (element,), element.type.array())


def _appended(array: Scalar, element: Scalar) -> Scalar:
    return Call(APPEND, (array, element), array.type)


def _check_columns(word: str, clause: Search | Cycle, names: Sequence[str]) -> None:
    """Raises 42601 or 42701 if the list of columns has other ones than those of the query, or one of them twice."""
    for place, name in enumerate(clause.columns):
        if name not in names:
            raise SyntaxError_(f'{word} column "{name}" not in WITH query column list', position=clause.position)
        if name in clause.columns[:place]:
            raise DuplicateColumn(f'{word} column "{name}" specified more than once', position=clause.position)


def _check_new(what: str, name: str, names: Sequence[str], clause: Search | Cycle) -> None:
    if name in names:
        raise SyntaxError_(f'{what} column name "{name}" already used in WITH query column list', position=clause.position)


def _check_names(search: Search | None, cycle: Cycle) -> None:
    """Raises 42601 if two added columns have the same name."""
    if cycle.mark == cycle.path:
        raise SyntaxError_("cycle mark column name and cycle path column name are the same", position=cycle.position)
    if search is None:
        return
    for what, name in (("mark", cycle.mark), ("path", cycle.path)):
        if search.sequence == name:
            message = f"search sequence column name and cycle {what} column name are the same"
            raise SyntaxError_(message, position=search.position)
