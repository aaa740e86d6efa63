"""Tailgate: a PostgreSQL endpoint for views that Spark keeps up to date.

lake       the log, the tables and the catalog: what all processes share
formats    Kafka's record formats that engine, sinks and registry share
values     input and output of every type, as text and binary
sql        from a statement's text to a plan, and from a plan to SQL of DuckDB and Spark
engine     keeps materialized views up to date
gateway    answers PostgreSQL clients
sinks      write changes to Kafka
embedded   Kafka, a schema registry and the supervisor for one machine
cli        the command line
"""
