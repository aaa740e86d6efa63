"""Functions of JSON whose rows have the columns of a relation or of a type."""
