"""PostgreSQL's lexical rules: text to tokens."""
