"""Statements that write rows of tables: INSERT, UPDATE, DELETE, TRUNCATE, COPY, and those that define a table with its rows."""
