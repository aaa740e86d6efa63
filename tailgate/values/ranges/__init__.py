"""Range types: intervals of integers, numerics, dates and timestamps."""
