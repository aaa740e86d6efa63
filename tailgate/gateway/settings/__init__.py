"""The settings of a session: SET, SHOW, RESET and the startup message."""
