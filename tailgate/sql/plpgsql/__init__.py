"""PL/pgSQL, as far as DO and temporary functions need it: the nodes of a block, its parser and the names of errors."""
