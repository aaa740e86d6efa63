"""Text to values: what PostgreSQL's input functions do, for literals in statements and for casts of text in ad-hoc queries."""
