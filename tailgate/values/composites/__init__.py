"""Arrays and records."""
