"""The relation names that a text can use, and the record of those that it uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tailgate.lake.catalog import Catalog, Function, Item, MaterializedView, View
from tailgate.lake.catalog.schemas import is_system
from tailgate.lake.types import Field
from tailgate.sql.authorization import SESSION, Demand, merged
from tailgate.sql.plan import Relation

NO_WIDTHS: Mapping[int, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ExpandedView:
    """The plan of a plain view's query, with the needs of a text that names the view.

    `demands`: the privileges that the query needs, of the owners of this view and of the views and
    functions below it. `levels`: the number of views on the longest path from this view downward.
    """

    plan: Relation
    demands: tuple[Demand, ...]
    levels: int


@dataclass(frozen=True)
class Names:
    """The relation names that a text can use: CTEs first, then the catalog.

    `types_only`: the catalog has nothing but the types that an expression of a table may name.
    `hidden`: how many of the last columns of a CTE `*` leaves out, except in the query to which its WITH belongs (`whole`).
    `used`: ids of the items that the text itself names.
    `places`: the id of the named item, by position in the text.
    `widths`: by id, how many columns a relation had when the text was written, if it has more now.
    `demands`: the privileges that this text and its views and functions need (as keys, in order).
    `readers`: who needs the privileges of this text: SESSION, or ids of views and functions, which
    stand for their owners.
    `locked`: ids of the relations whose rows FOR UPDATE locks (as keys); None where it is refused.
    `locking`: aliases of the items of FROM whose rows are locked; empty for all items, None for no item.
    """

    catalog: Catalog
    types_only: bool = field(default=False, kw_only=True)
    ctes: dict[str, tuple[Relation, tuple[Field, ...]]] = field(default_factory=dict)
    hidden: dict[str, int] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    used: list[int] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    depth: int = 0  # the number of views around this text
    levels: list[int] = field(default_factory=list)  # `ExpandedView.levels` of the views that this text names
    inside: tuple[int, ...] = ()  # ids of the functions whose bodies contain this text
    views: dict[tuple[int, tuple[int, ...]], ExpandedView] = field(default_factory=dict)  # of the whole statement, by id and `inside`
    widths: Mapping[int, int] = field(default_factory=dict)
    recursions: list[str] = field(default_factory=list)  # names of recursive queries; the index is the query's number
    demands: dict[Demand, None] = field(default_factory=dict)
    readers: tuple[int, ...] = (SESSION,)
    locked: dict[int, None] | None = None
    locking: tuple[str, ...] | None = None

    def with_cte(self, name: str, plan: Relation, columns: tuple[Field, ...], hidden: int = 0) -> Names:
        return replace(self, ctes={**self.ctes, name: (plan, columns)}, hidden={**self.hidden, name: hidden})

    def within(self, function: Function) -> Names:
        """Returns the names for a function's body, whose owner needs the privileges, too."""
        readers = self.readers if function.id in self.readers else (*self.readers, function.id)
        inside = (*self.inside, function.id)
        return Names(
            self.catalog.stored,
            depth=self.depth,
            levels=self.levels,
            inside=inside,
            views=self.views,
            widths=function.known_columns,
            demands=self.demands,
            readers=readers,
        )

    def below(self, view: View | MaterializedView) -> Names:
        """Returns the names for a plain view's query. Only its owner needs the privileges.

        The query records its privileges and levels separately; see `take_over`.
        """
        return Names(
            self.catalog.stored,
            depth=self.depth + 1,
            inside=self.inside,
            views=self.views,
            widths=view.known_columns,
            readers=(view.id,),
        )

    def expanded(self, plan: Relation) -> ExpandedView:
        """Returns the view whose query has these names and this plan."""
        return ExpandedView(plan, self.demanded(), 1 + max(self.levels, default=0))

    def take_over(self, view: ExpandedView) -> None:
        """Records what this text needs because it names a plain view."""
        self.demands.update(dict.fromkeys(view.demands))
        self.levels.append(view.levels)

    def demand(self, *demands: Demand | None) -> None:
        """Records that this text needs privileges."""
        self.demands.update(dict.fromkeys(filter(None, demands)))

    def use(self, item: Item, at: int | None) -> None:
        """Records that this text names an item, at a position. As in PostgreSQL, nothing depends on a system relation."""
        if item.id not in self.used and not is_system(item.id):
            self.used.append(item.id)
        if at is not None:
            self.places[at] = item.id

    def demanded(self) -> tuple[Demand, ...]:
        return merged(self.demands)
