"""Character and byte strings, uuid and jsonb."""
