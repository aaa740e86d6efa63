"""The storage of tables and indexes that statements describe."""
