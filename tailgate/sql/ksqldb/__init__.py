"""The dialect of ksqlDB: from text to frozen values, and from these to Tailgate's statements.

    text ──► tokens ──► parser ──► statements (frozen values) ──► sources, views, sinks of the catalog

- `names` maps names of ksqlDB to those of the catalog and back.
- `queries` translates queries to PostgreSQL's dialect.
- `dialect` decides which dialect a statement belongs to.
- `declared.refusals` rejects, by name, statements that are parsed and not executed.

Source: ksqlDB 0.29, documentation, "ksqlDB syntax reference".
"""
