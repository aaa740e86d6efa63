"""Typed expressions of PostgreSQL's dialect: the values of ksqlDB's operators, casts and constructors."""
