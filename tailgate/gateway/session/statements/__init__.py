"""The statements of a session: their parsed texts, prepared statements, portals and cursors, and their statistics."""
