"""Range and multirange types: one or several intervals of integers, numerics, dates or timestamps."""
