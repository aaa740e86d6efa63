"""Roles, their privileges, and the objects that they own."""
