"""Properties of plans: keys, numbers of rows, and the conditions that hold for rows."""
