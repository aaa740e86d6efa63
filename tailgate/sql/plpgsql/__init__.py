"""PL/pgSQL, as far as DO needs it: the nodes of a block, its parser and the names of errors."""
