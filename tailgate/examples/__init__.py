"""Examples to run with Tailgate."""
