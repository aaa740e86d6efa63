"""Parses statements about enum types and domains."""
