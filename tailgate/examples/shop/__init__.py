"""The shop of scenario 1: page views, users that change, and a view that counts page views by segment.

load.py         writes page views (JSON) and users (Debezium's envelope, Avro) to Kafka at a rate
statements.sql  sources, views and sink, as typed in psql
recompute.py    recomputes the view with DuckDB from all messages in the topics
demo.py         all of it, live: `tailgate demo`
"""
