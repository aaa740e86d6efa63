"""The shop of the first scenario: page views, users that change, and a view of views by segment.

load.py         writes page views (JSON) and users (Debezium's envelope, Avro) to Kafka at a rate
statements.sql  sources, views and sink, as a person would type them
recompute.py    the view again, by DuckDB, from everything in the topics
demo.py         all of it, live: `tailgate demo`
"""
