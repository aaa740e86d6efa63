"""The relational algebra of bound queries, as frozen values with types and catalog ids.

    Relation: rows with `columns`; a Scalar in it refers to columns of its input by position
    Scalar:   a value of `type` computed from one row

Two plans are equal if their trees are equal. Column names are for output and EXPLAIN. The unions are
closed: each `match` ends with assert_never, so the type checker lists all places that must handle a
new node.

`scalars` and `relations` have the nodes. `traversal` and `rewriting` traverse and rebuild them;
`subqueries` has the nodes that exist only between binding and decorrelation; `properties` derives
keys, and `explain` prints a plan.
"""

from tailgate.sql.plan.query import Query
from tailgate.sql.plan.relations import (
    ArrivalJoin,
    Closing,
    Distinct,
    Filter,
    Generate,
    Join,
    JoinKind,
    Limit,
    Project,
    Recursive,
    Reduce,
    Relation,
    Retention,
    Scan,
    Session,
    SetOperation,
    Sort,
    TopK,
    UnionAll,
    Values,
    Window,
    WithinJoin,
    WorkingTable,
    name_of,
)
from tailgate.sql.plan.scalars import (
    AggregateCall,
    And,
    Bound,
    Call,
    Case,
    Coalesce,
    Column,
    Frame,
    GreatestLeast,
    InList,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
    Parameter,
    Scalar,
    SortKey,
    WindowCall,
    nullable,
)
from tailgate.values.codec.codec import Value

__all__ = [
    "AggregateCall",
    "And",
    "ArrivalJoin",
    "Bound",
    "Call",
    "Case",
    "Closing",
    "Coalesce",
    "Column",
    "Distinct",
    "Filter",
    "Frame",
    "Generate",
    "GreatestLeast",
    "InList",
    "IsDistinct",
    "IsNull",
    "Join",
    "JoinKind",
    "Limit",
    "Literal",
    "Not",
    "Or",
    "Parameter",
    "Project",
    "Query",
    "Recursive",
    "Reduce",
    "Relation",
    "Retention",
    "Scalar",
    "Scan",
    "Session",
    "SetOperation",
    "Sort",
    "SortKey",
    "TopK",
    "UnionAll",
    "Value",
    "Values",
    "Window",
    "WindowCall",
    "WithinJoin",
    "WorkingTable",
    "name_of",
    "nullable",
]
