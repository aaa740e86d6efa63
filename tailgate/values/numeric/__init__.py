"""Arithmetic of general numerics: values, display scales and errors of PostgreSQL's type numeric."""
