"""Tables that say, for each kind of join, which conditions may be evaluated on a side before the join."""

from __future__ import annotations

from tailgate.sql.plan import JoinKind

# Sides of which the join only needs rows that match. The parts of the join condition that read only
# such a side may be evaluated before the join.
MATCHED: dict[JoinKind, tuple[bool, bool]] = {
    "inner": (True, True),
    "left": (False, True),
    "right": (True, False),
    "full": (False, False),
    "semi": (True, True),
    "anti": (False, True),
}
# Sides that the join does not extend with rows of NULLs. Filters above the join that read only such
# a side may be evaluated before it.
WHOLE: dict[JoinKind, tuple[bool, bool]] = {
    "inner": (True, True),
    "cross": (True, True),
    "left": (True, False),
    "right": (False, True),
    "full": (False, False),
    "semi": (True, False),
    "anti": (True, False),
}
