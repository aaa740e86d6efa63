"""Transaction blocks: the statements that begin and end them, and the commit of definitions with rows."""
