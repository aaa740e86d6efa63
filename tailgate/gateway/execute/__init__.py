"""The execution of statements, by kind. `handlers.dispatch` selects the module. `tables` has statements that write rows."""
