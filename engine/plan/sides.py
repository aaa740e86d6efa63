"""What may be asked of a side of a join before the join, by its kind: of the left and of the right."""

from __future__ import annotations

from sql.plan import JoinKind

# of which sides a join needs only rows that match: what its condition asks of those may be asked before it
MATCHED: dict[JoinKind, tuple[bool, bool]] = {
    "inner": (True, True),
    "left": (False, True),
    "right": (True, False),
    "full": (False, False),
    "semi": (True, True),
    "anti": (False, True),
}
# of which sides it makes no rows of NULLs: a filter of those may be asked before it
WHOLE: dict[JoinKind, tuple[bool, bool]] = {
    "inner": (True, True),
    "cross": (True, True),
    "left": (True, False),
    "right": (False, True),
    "full": (False, False),
    "semi": (True, False),
    "anti": (True, False),
}
