"""Transaction blocks: the statements that begin and end them, their cursors, and the commit of definitions with rows."""
