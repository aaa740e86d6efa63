"""The rules of PostgreSQL's chapter "Type Conversion": casts, overloads, polymorphic functions."""
